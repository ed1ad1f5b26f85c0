package traffic

import "sluice.dev/sluice/filters/limits/meter"

// Key says which requests are counted together.
type Key struct {
	Route  uint32 // number given by meter.Names
	Method uint8  // see MethodNumber
	Class  uint8  // of the status, see meter.Class
	Reason uint8  // number given by Reasons; 0: nothing was refused
	Passed bool   // the edge filter let it pass, whatever came then
}

// The size of a Table. It has no pointers, so a garbage collection does not look into
// it, and its bytes are the same whatever the traffic.
const (
	slots  = 512 // a power of two
	most   = slots * 3 / 4
	probes = 16
)

// Table counts requests by Key. What it has no room for it counts under the route "",
// so that the totals are always whole.
type Table struct {
	entries []entry
	used    []uint16 // places in entries, in the order in which they were taken
	rest    [meter.Classes]Counts
	dirty   bool
}

type entry struct {
	key    Key
	counts Counts
}

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{entries: make([]entry, slots), used: make([]uint16, 0, most)}
}

// Add counts a request, and reports whether the table should be emptied now, because
// it has hardly any room left.
func (t *Table) Add(k Key, r Request) (full bool) {
	t.dirty = true
	if c := t.find(k); c != nil {
		c.add(r)
		return len(t.used) >= most
	}
	t.rest[k.Class].add(r)
	return true
}

// Empty reports whether nothing has been counted since the last Reset.
func (t *Table) Empty() bool { return !t.dirty }

// find returns the counts of k; nil when they are not there and have no room.
func (t *Table) find(k Key) *Counts {
	h := k.hash()
	for n := range uint32(probes) {
		e := &t.entries[(h+n)%slots]
		if e.key == k && e.counts.Requests > 0 {
			return &e.counts
		}
		if e.counts.Requests == 0 {
			if len(t.used) == cap(t.used) {
				return nil
			}
			e.key = k
			t.used = append(t.used, uint16((h+n)%slots))
			return &e.counts
		}
	}
	return nil
}

func (k Key) hash() uint32 {
	x := uint64(k.Route)<<24 | uint64(k.Method)<<16 | uint64(k.Class)<<8 | uint64(k.Reason)
	return uint32(x * 0x9e3779b97f4a7c15 >> 40)
}

// Reset forgets everything.
func (t *Table) Reset() {
	for _, i := range t.used {
		t.entries[i] = entry{}
	}
	t.used, t.dirty = t.used[:0], false
	t.rest = [meter.Classes]Counts{}
}

// each calls f for everything that was counted.
func (t *Table) each(f func(Key, *Counts)) {
	for _, i := range t.used {
		f(t.entries[i].key, &t.entries[i].counts)
	}
	for class := range t.rest {
		if t.rest[class].Requests > 0 {
			f(Key{Class: uint8(class), Passed: true}, &t.rest[class])
		}
	}
}

// Reasons numbers the reasons of refusals: codes of package decision. The zero value
// has only number 0, which stands for none.
type Reasons struct {
	codes []string // codes[i] has number i+1
}

// maxReasons bounds them: there are fewer codes.
const maxReasons = 100

// Number returns the number of a code, the same each time; 0 for "", and once there
// are too many.
func (r *Reasons) Number(code string) uint8 {
	if code == "" {
		return 0
	}
	for i, c := range r.codes {
		if c == code {
			return uint8(i + 1)
		}
	}
	if len(r.codes) == maxReasons {
		return 0
	}
	r.codes = append(r.codes, code)
	return uint8(len(r.codes))
}
