package httpcache

import (
	"bytes"
	"fmt"
	"testing"
)

// memory is a Data.
type memory struct {
	values   map[string][]byte
	versions map[string]uint32
	before   func() // called before each Set
}

func newMemory() *memory { return &memory{values: map[string][]byte{}, versions: map[string]uint32{}} }

func (m *memory) Get(key string) ([]byte, uint32) { return m.values[key], m.versions[key] }
func (m *memory) Set(key string, value []byte, version uint32) bool {
	if f := m.before; f != nil {
		m.before = nil
		f()
	}
	if have := m.versions[key]; version != 0 && have != 0 && have != version {
		return false
	}
	m.values[key] = bytes.Clone(value)
	m.versions[key]++
	return true
}

// bytes is what all answers take.
func (m *memory) bytes() (n int) {
	for key, v := range m.values {
		if key[0] == 'd' && len(v) > 1 {
			n += len(v)
		}
	}
	return n
}

func entry(n int, set byte, size int) Entry {
	e := Entry{Stored: now * 1000, Status: 200, Body: bytes.Repeat([]byte{'x'}, size)}
	e.Key[0], e.Key[1], e.Key[2], e.Key[3] = set, byte(n), byte(n>>8), byte(n>>16)
	return e
}

func TestWhatIsKeptIsFound(t *testing.T) {
	t.Parallel()
	m := newMemory()
	e := entry(1, 3, 10)
	e.Headers = [][2]string{{"a", "b"}}
	more, ok := Put(m, e, 7, 60, now)
	got, found := Find(m, e.Key, now+59)
	if !ok || !found || more != m.bytes() || fmt.Sprint(got) != fmt.Sprint(e) {
		t.Errorf("%v %v %d of %d: %+v", ok, found, more, m.bytes(), got)
	}
	if _, found := Find(m, e.Key, now+60); found {
		t.Error("it is found after its end")
	}
	near := e
	near.Key[31] = 1 // the index has only the half of keys
	if _, found := Find(m, near.Key, now); found {
		t.Error("another key's answer was found")
	}
	e.Body = []byte("new")
	if more, _ = Put(m, e, 7, 60, now); more != -7 {
		t.Errorf("%d bytes more", more)
	}
	if got, _ := Find(m, e.Key, now); string(got.Body) != "new" {
		t.Errorf("%q", got.Body)
	}
}

// Whatever is asked for, memory has its bound, what is counted is what is there, and who
// asks for ever new addresses leaves the others' answers where they are.
func TestAFloodIsBounded(t *testing.T) {
	t.Parallel()
	m := newMemory()
	bytes := 0
	put := func(e Entry, share uint32) {
		more, ok := Put(m, e, share, 600, now)
		if !ok {
			t.Fatal("not kept")
		}
		bytes += more
	}
	victim := entry(1<<20, 0, 1000)
	put(victim, 1)
	for i := range 3000 {
		put(entry(i, byte(i%4), 8000), 2)
	}
	for i := range 30 {
		put(entry(i+1<<18, 0, 1<<20), 3)
	}
	if _, found := Find(m, victim.Key, now); !found {
		t.Error("the flood of two has pushed out another's answer")
	}
	if bytes != m.bytes() || bytes > 4*SetBytes {
		t.Errorf("%d bytes are counted, %d are there", bytes, m.bytes())
	}
	for account := range 2 * ways {
		put(entry(account+1<<19, 1, 10), uint32(100+account))
	}
	if b, _ := m.Get(indexKey(1)); len(b) > ways*slotSize || bytes != m.bytes() {
		t.Errorf("an index of %d bytes, %d of %d bytes", len(b), bytes, m.bytes())
	}
	if _, ok := Put(m, entry(0, 0, ShareBytes), 9, 60, now); ok {
		t.Error("an answer larger than a share was kept")
	}
}

// Two workers that write at a time leave what the index says.
func TestWorkersCompete(t *testing.T) {
	t.Parallel()
	m := newMemory()
	a, b := entry(1, 0, 100), entry(2, 0, 200)
	m.before = func() { Put(m, b, 1, 60, now) }
	if _, ok := Put(m, a, 1, 60, now); !ok {
		t.Fatal("not kept")
	}
	for _, e := range []Entry{a, b} {
		if got, found := Find(m, e.Key, now); !found || len(got.Body) != len(e.Body) {
			t.Errorf("%v %d", found, len(got.Body))
		}
	}
	// The place of a is given to another between its index and its bytes.
	m = newMemory()
	m.values["hook"] = nil
	Put(m, a, 1, 60, now)
	list := parseIndex(m.values[indexKey(0)])
	list[0] = slot{key: [16]byte(b.Key[:16]), stored: now, expires: now + 60, size: 1, share: 1}
	m.values[indexKey(0)] = appendIndex(list)
	settle(m, 0, 0, slot{key: [16]byte(a.Key[:16])}, a.Key)
	if m.bytes() != 0 {
		t.Errorf("%d bytes that the index knows nothing of", m.bytes())
	}
}
