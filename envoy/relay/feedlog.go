package relay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"

	"sluice.dev/sluice/filters/credentials/keytable"
)

// feedLog is the feed as this edge has read it: a whole snapshot, page by page,
// then every page of changes, in a file that only grows. Whoever asks for what
// was asked before gets the same pages, so an Envoy that starts loads from the
// log, with no replica at hand as well as with one.
//
// In the file each page stands with the question that it answers, its length
// and a checksum. What follows the first damaged page is cut off: the edge then
// goes on from there, and asks for the rest again.
type feedLog struct {
	file *os.File

	mu          sync.Mutex
	state       keytable.State    // after the last page
	pages       map[question]span // where the answer to each question is
	first       span              // of the snapshot's first page; size 0: there is none
	size        int64
	snapshotEnd int64 // size when the snapshot was complete; 0: it is not
}

// question is what is asked of the feed: State.Query, without the wait.
type question struct {
	epoch, position uint64
	cursor          keytable.Tag
}

// span is where a page is in the file.
type span struct {
	at   int64
	size int
}

func questionOf(s keytable.State) question {
	q := question{epoch: s.Epoch, position: s.Position}
	if s.Loading {
		q.cursor = s.Cursor
	}
	return q
}

// frameHeader is the length of what stands before a page: its length, the
// checksum of the rest, and the question.
const frameHeader = 4 + 4 + 32

// maxPage bounds a page, in bytes.
const maxPage = 64 + keytable.MaxPageRecords*keytable.RecordSize

func newFeedLog(f *os.File) *feedLog { return &feedLog{file: f, pages: map[question]span{}} }

// openFeedLog reads a feed log from its file, which it cuts off where it is damaged; cut
// is how many bytes that were.
func openFeedLog(name string) (t *feedLog, cut int64, err error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0o600)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	t = newFeedLog(f)
	buf := make([]byte, frameHeader+maxPage)
	for t.readNext(buf) {
	}
	if cut = info.Size() - t.size; cut > 0 {
		err = f.Truncate(t.size)
	}
	return t, cut, err
}

// readNext takes the next page of the file in; false at its end, or where it is
// damaged.
func (t *feedLog) readNext(buf []byte) bool {
	head := buf[:frameHeader]
	if _, err := t.file.ReadAt(head, t.size); err != nil {
		return false
	}
	n := int(binary.LittleEndian.Uint32(head))
	if n > maxPage {
		return false
	}
	page := buf[frameHeader : frameHeader+n]
	if _, err := t.file.ReadAt(page, t.size+frameHeader); err != nil {
		return false
	}
	if crc32.Checksum(buf[8:frameHeader+n], castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
		return false
	}
	p, ok := keytable.ParsePage(page)
	if !ok {
		return false
	}
	q := question{epoch: binary.LittleEndian.Uint64(head[8:]), position: binary.LittleEndian.Uint64(head[16:]), cursor: keytable.Tag(head[24:40])}
	t.index(q, p, n)
	return true
}

// index enters a page that stands at the end of the file.
func (t *feedLog) index(q question, p keytable.Page, n int) {
	at := span{t.size + frameHeader, n}
	if t.first.size == 0 {
		t.first = at
	}
	t.pages[q] = at
	t.state = t.state.After(p)
	t.size += int64(frameHeader + n)
	if t.snapshotEnd == 0 && t.state.Ready {
		t.snapshotEnd = t.size
	}
}

// append adds the answer to the question that the log's state asks.
func (t *feedLog) append(page []byte, p keytable.Page) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := questionOf(t.state)
	frame := make([]byte, frameHeader, frameHeader+len(page))
	binary.LittleEndian.PutUint32(frame, uint32(len(page)))
	binary.LittleEndian.PutUint64(frame[8:], q.epoch)
	binary.LittleEndian.PutUint64(frame[16:], q.position)
	copy(frame[24:], q.cursor[:])
	frame = append(frame, page...)
	binary.LittleEndian.PutUint32(frame[4:], crc32.Checksum(frame[8:], castagnoli))
	if _, err := t.file.WriteAt(frame, t.size); err != nil {
		return fmt.Errorf("write a page of the feed: %w", err)
	}
	t.index(q, p, len(page))
	return nil
}

// answer returns the page for a question, with the changes after it as far as
// they fit into one; nil when the log does not have it. What nobody ever asked
// is answered with the first page of the snapshot.
func (t *feedLog) answer(q question) ([]byte, error) {
	t.mu.Lock()
	at, ok := t.pages[q]
	head, first, size := t.state, t.first, t.size
	t.mu.Unlock()
	switch {
	case !ok && q == questionOf(head):
		return nil, nil
	case !ok:
		at = first
	}
	if at.size == 0 {
		return nil, nil
	}
	page, err := t.readPage(at)
	if err != nil {
		return nil, err
	}
	p, ok := keytable.ParsePage(page)
	if !ok {
		return nil, errors.New("a page of the feed log is damaged")
	}
	if p.Snapshot {
		return page, nil
	}
	return t.appendChanges(p, at, size)
}

// appendChanges adds the pages of changes that follow at to p.
func (t *feedLog) appendChanges(p keytable.Page, at span, end int64) ([]byte, error) {
	p.Records = append([]byte(nil), p.Records...)
	for next := at.at + int64(at.size); next < end; {
		var head [frameHeader]byte
		if _, err := t.file.ReadAt(head[:], next); err != nil {
			return nil, err
		}
		at = span{next + frameHeader, int(binary.LittleEndian.Uint32(head[:]))}
		if len(p.Records)+at.size > keytable.MaxPageRecords*keytable.RecordSize {
			break
		}
		page, err := t.readPage(at)
		if err != nil {
			return nil, err
		}
		q, ok := keytable.ParsePage(page)
		if !ok || q.Snapshot {
			return nil, errors.New("a page of the feed log is damaged")
		}
		p.Position, p.Last, p.Records = q.Position, q.Last, append(p.Records, q.Records...)
		next = at.at + int64(at.size)
	}
	return p.Append(nil), nil
}

// readPage reads one page.
func (t *feedLog) readPage(at span) ([]byte, error) {
	b := make([]byte, at.size)
	if _, err := t.file.ReadAt(b, at.at); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read a page of the feed log: %w", err)
	}
	return b, nil
}

// head is the state after the last page.
func (t *feedLog) head() keytable.State {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state
}

// needsCompaction reports whether the changes take so many bytes that the log should be
// compacted: more than half of the snapshot, and at least least bytes.
func (t *feedLog) needsCompaction(least int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.snapshotEnd > 0 && t.size-t.snapshotEnd > max(least, t.snapshotEnd/2)
}
