package traffic

import (
	"sluice.dev/sluice/filters/limits/meter"
	"sluice.dev/sluice/filters/limits/slots"
)

// Key says which requests are counted together.
type Key struct {
	Route  uint32 // number given by meter.Names
	Method uint8  // see MethodNumber
	Class  uint8  // of the status, see meter.Class
	Reason uint8  // number given by Reasons; 0: nothing was refused
	Passed bool   // the edge filter let it pass, whatever came then
}

// size of a Table, in slots: its bytes are the same whatever the traffic.
const size = 512

// Table counts requests by Key. What it has no room for it counts under the route "",
// so that the totals are always whole.
type Table struct {
	counted slots.Table[Key, Counts]
	rest    [meter.Classes]Counts
	dirty   bool
}

// NewTable returns an empty table.
func NewTable() *Table { return &Table{counted: slots.New[Key, Counts](size)} }

// Add counts a request, and reports whether the table should be emptied now, because
// it has no room left.
func (t *Table) Add(k Key, r Request) (full bool) {
	t.dirty = true
	if c := t.counted.Find(k); c != nil {
		c.add(r)
		return t.counted.Full()
	}
	t.rest[k.Class].add(r)
	return true
}

// AddPart counts a part of an open connection, as Add does a request.
func (t *Table) AddPart(k Key, p meter.Part) (full bool) {
	t.dirty = true
	if c := t.counted.Find(k); c != nil {
		c.addPart(p)
		return t.counted.Full()
	}
	t.rest[k.Class].addPart(p)
	return true
}

// Empty reports whether nothing has been counted since the last Reset.
func (t *Table) Empty() bool { return !t.dirty }

// Hash mixes k, whose numbers are small.
func (k Key) Hash() uint32 {
	x := uint64(k.Route)<<24 | uint64(k.Method)<<16 | uint64(k.Class)<<8 | uint64(k.Reason)
	return uint32(x * 0x9e3779b97f4a7c15 >> 40)
}

// Reset forgets everything.
func (t *Table) Reset() {
	t.counted.Reset()
	t.rest, t.dirty = [meter.Classes]Counts{}, false
}

// each calls f for everything that was counted.
func (t *Table) each(f func(Key, *Counts)) {
	t.counted.Each(f)
	for class := range t.rest {
		if c := &t.rest[class]; c.Requests > 0 || c.Open > 0 || c.In > 0 || c.Out > 0 {
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
