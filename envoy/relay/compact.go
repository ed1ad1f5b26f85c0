package relay

import (
	"encoding/binary"
	"errors"
	"os"

	"sluice.dev/sluice/filters/credentials/keytable"
)

// compact writes a feed log with the same records and no changes into f: only the
// changes are held in memory, and a page of the snapshot at a time.
func (t *feedLog) compact(f *os.File) (*feedLog, error) {
	changes, err := t.changes()
	if err != nil {
		return nil, err
	}
	out := &pageWriter{log: newFeedLog(f), to: t.head()}
	for next := int64(0); next < t.snapshotEnd; {
		page, size, err := t.pageAt(next)
		if err != nil {
			return nil, err
		}
		rest := page.Records
		for n := page.Lo; n <= page.Hi; n++ {
			k := 0
			for k < len(rest) && keytable.Tag(rest[k:k+16]).Bucket() <= n {
				k += keytable.RecordSize
			}
			bucket := append(out.scratch[:0], rest[:k]...)
			for _, record := range changes[n] {
				bucket = keytable.Apply(bucket, record)
			}
			if err := out.add(n, bucket); err != nil {
				return nil, err
			}
			out.scratch, rest = bucket, rest[k:]
		}
		next += int64(size)
	}
	return out.log, out.end()
}

// pageAt parses the page whose frame begins at an offset, and returns the frame's size.
func (t *feedLog) pageAt(offset int64) (p keytable.Page, size int, err error) {
	var head [frameHeader]byte
	if _, err := t.file.ReadAt(head[:], offset); err != nil {
		return p, 0, err
	}
	n := int(binary.LittleEndian.Uint32(head[:]))
	page, err := t.readPage(span{offset + frameHeader, n})
	if err != nil {
		return p, 0, err
	}
	p, ok := keytable.ParsePage(page)
	if !ok {
		return p, 0, errors.New("a page of the feed log is damaged")
	}
	return p, frameHeader + n, nil
}

// changes are the records after the snapshot in their order, by bucket.
func (t *feedLog) changes() (map[uint32][][]byte, error) {
	by := map[uint32][][]byte{}
	for next := t.snapshotEnd; next < t.size; {
		p, size, err := t.pageAt(next)
		if err != nil {
			return nil, err
		}
		for r := p.Records; len(r) > 0; r = r[keytable.RecordSize:] {
			n := keytable.Tag(r[:16]).Bucket()
			by[n] = append(by[n], r[:keytable.RecordSize])
		}
		next += int64(size)
	}
	return by, nil
}

// pageWriter collects buckets into pages.
type pageWriter struct {
	log     *feedLog
	to      keytable.State // where the log shall end
	lo      uint32         // first bucket of the page under way
	page    []byte
	scratch []byte
}

// add takes the records of bucket n, the one after the last.
func (w *pageWriter) add(n uint32, bucket []byte) error {
	if len(w.page) > 0 && len(w.page)+len(bucket) > keytable.MaxPageRecords*keytable.RecordSize {
		if err := w.write(n-1, false); err != nil {
			return err
		}
	}
	w.page = append(w.page, bucket...)
	return nil
}

// write writes the page under way, which goes up to bucket hi. Its cursor only
// has to differ from those of the others.
func (w *pageWriter) write(hi uint32, last bool) error {
	p := keytable.Page{Snapshot: true, Last: last, Epoch: w.to.Epoch, Position: w.to.Position, Lo: w.lo, Hi: hi, Records: w.page}
	if !last {
		binary.BigEndian.PutUint32(p.Cursor[:], hi+1)
	}
	err := w.log.append(p.Append(nil), p)
	w.lo, w.page = hi+1, w.page[:0]
	return err
}

func (w *pageWriter) end() error { return w.write(keytable.Buckets-1, true) }
