package relay

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/filters/credentials/keytable"
)

// memory is an edge's shared data.
type memory map[uint32][]byte

func (m memory) Bucket(n uint32) []byte       { return m[n] }
func (m memory) SetBucket(n uint32, b []byte) { m[n] = bytes.Clone(b) }

// records are those of m, whatever their order in a bucket.
func (m memory) records() map[keytable.Tag]string {
	all := map[keytable.Tag]string{}
	for _, b := range m {
		for ; len(b) > 0; b = b[keytable.RecordSize:] {
			all[keytable.Tag(b[:16])] = string(b[:keytable.RecordSize])
		}
	}
	return all
}

// record is a key with an id, or its tombstone if id is 0.
func record(tag uint32, id uint64) []byte {
	r := keytable.Record{ID: id}
	if id > 0 {
		r.Kind = keytable.KindKey
	}
	binary.BigEndian.PutUint32(r.Tag[:], tag*0x01000193)
	return r.Append(nil)
}

func createLog(t *testing.T) *feedLog {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "log"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return newFeedLog(f)
}

func put(t *testing.T, log *feedLog, p keytable.Page) {
	t.Helper()
	if err := log.append(p.Append(nil), p); err != nil {
		t.Fatal(err)
	}
}

// snapshot puts a snapshot of two pages in the log, with one record in each half.
func snapshot(t *testing.T, log *feedLog) {
	t.Helper()
	const half = keytable.Buckets / 2
	low, high := keytable.Record{Kind: keytable.KindKey, ID: 1}, keytable.Record{Kind: keytable.KindKey, ID: 2}
	high.Tag[0] = 0xff
	put(t, log, keytable.Page{Snapshot: true, Epoch: 5, Position: 70, Hi: half - 1, Cursor: keytable.Tag{0x7f}, Records: low.Append(nil)})
	put(t, log, keytable.Page{Snapshot: true, Last: true, Epoch: 5, Position: 70, Lo: half, Hi: keytable.Buckets - 1, Records: high.Append(nil)})
}

func change(t *testing.T, log *feedLog, records ...[]byte) {
	t.Helper()
	head := log.head()
	put(t, log, keytable.Page{Last: true, Epoch: head.Epoch, Position: head.Position + uint64(len(records)), Hi: keytable.Buckets - 1, Records: bytes.Join(records, nil)})
}

// play reads a feed log from a state on as keysync does, and returns where it ends
// and how many pages that took.
func play(t *testing.T, log *feedLog, s keytable.State, m memory) (keytable.State, int) {
	t.Helper()
	for n := 0; ; n++ {
		b, err := log.answer(questionOf(s))
		if err != nil {
			t.Fatal(err)
		}
		if b == nil {
			return s, n
		}
		p, ok := keytable.ParsePage(b)
		if !ok {
			t.Fatal("the log answers with no page")
		}
		s = s.Apply(p, m)
	}
}

func TestEnvoyLoadsFromTheTape(t *testing.T) {
	t.Parallel()
	log := createLog(t)
	snapshot(t, log)
	for i := range uint32(100) {
		change(t, log, record(i+1, uint64(i+10)))
	}
	change(t, log, record(1, 0))
	m := memory{}
	end, pages := play(t, log, keytable.State{}, m)
	if !end.Ready || end != log.head() || len(m.records()) != 2+99 {
		t.Fatalf("%+v, %d records", end, len(m.records()))
	}
	if pages != 3 {
		t.Errorf("%d pages: changes are not joined", pages)
	}
	change(t, log, record(7, 0))
	if _, pages := play(t, log, end, m); pages != 1 || len(m.records()) != 2+98 {
		t.Errorf("%d pages, %d records", pages, len(m.records()))
	}
}

// Whoever asks from a place that the log does not know starts again.
func TestStrangeQuestionsGetASnapshot(t *testing.T) {
	t.Parallel()
	log := createLog(t)
	snapshot(t, log)
	change(t, log, record(1, 9))
	for name, s := range map[string]keytable.State{
		"another history": {Epoch: 4, Position: 70, Ready: true},
		"the future":      {Epoch: 5, Position: 99, Ready: true},
		"another cursor":  {Epoch: 5, Position: 70, Loading: true, Cursor: keytable.Tag{1}},
	} {
		m := memory{9: []byte("of another history: it must go......" + string(make([]byte, 28)))}
		if end, _ := play(t, log, s, m); end.Position != 71 || len(m.records()) != 3 {
			t.Errorf("%s: %+v, %d records", name, end, len(m.records()))
		}
	}
}

func TestTapeSurvivesAndItsDamagedEndIsCutOff(t *testing.T) {
	t.Parallel()
	log := createLog(t)
	snapshot(t, log)
	change(t, log, record(1, 9))
	good := log.size
	change(t, log, record(2, 9))
	whole, name := log.size, log.file.Name()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		bytes []byte
		end   int64
	}{
		"as it was":       {raw, whole},
		"cut short":       {raw[:whole-1], good},
		"a flipped bit":   {flip(raw, whole-3), good},
		"a long garbage":  {append(bytes.Clone(raw), bytes.Repeat([]byte{0xff}, 100)...), whole},
		"zeros at end":    {append(bytes.Clone(raw), make([]byte, 4096)...), whole},
		"a flipped start": {flip(raw, 9), 0},
	} {
		copied := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(copied, c.bytes, 0o600); err != nil {
			t.Fatal(err)
		}
		again, cut, err := openFeedLog(copied)
		if err != nil {
			t.Fatal(err)
		}
		if again.size != c.end || cut != int64(len(c.bytes))-c.end || again.head().Ready != (c.end > 0) {
			t.Errorf("%s: %d bytes, %d cut, %+v", what, again.size, cut, again.head())
		}
		again.file.Close()
	}
}

func flip(b []byte, at int64) []byte {
	b = bytes.Clone(b)
	b[at] ^= 1
	return b
}

// A compacted log ends where the old one did and holds the same, also when it
// takes many pages.
func TestCompactedTapeIsTheSame(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	old := createLog(t)
	snapshot(t, old)
	for range 20 {
		var batch [][]byte
		for range 5000 {
			batch = append(batch, record(r.Uint32N(60_000)+1, uint64(r.IntN(3))))
		}
		change(t, old, batch...)
	}
	next := createLog(t)
	small, err := old.compact(next.file)
	if err != nil {
		t.Fatal(err)
	}
	before, after := memory{}, memory{}
	play(t, old, keytable.State{}, before)
	end, pages := play(t, small, keytable.State{}, after)
	if end != old.head() || !maps.Equal(before.records(), after.records()) {
		t.Errorf("%+v, want %+v; %d records, want %d", end, old.head(), len(after.records()), len(before.records()))
	}
	if pages < 2 || small.size >= old.size || small.needsCompaction(0) || !old.needsCompaction(0) {
		t.Errorf("%d pages, %d bytes of %d", pages, small.size, old.size)
	}
	again, cut, err := openFeedLog(next.file.Name())
	if err != nil || cut != 0 || again.head() != end {
		t.Errorf("%d bytes cut, %v", cut, err)
	}
	change(t, small, record(1, 77))
	if s, n := play(t, small, end, after); n != 1 || s.Position != end.Position+1 {
		t.Errorf("%+v after %d pages", s, n)
	}
}

func FuzzOpenTape(f *testing.F) {
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{1}, 200))
	f.Fuzz(func(t *testing.T, raw []byte) {
		name := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(name, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		log, cut, err := openFeedLog(name)
		if err != nil {
			t.Fatal(err)
		}
		defer log.file.Close()
		if log.size+cut != int64(len(raw)) {
			t.Errorf("%d bytes read and %d cut of %d", log.size, cut, len(raw))
		}
	})
}
