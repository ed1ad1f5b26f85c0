package keytable

// Memo remembers records as they were at a revision of the table: a number that
// changes with every change of the table, see Find. Asking for the revision costs
// an edge a seventh of a look-up. The zero Memo is empty and ready.
//
// Records are kept as bytes: WASM's optimiser takes minutes over slots of structs
// with arrays in them.
type Memo struct {
	bytes []byte // RecordSize for each slot
	slots []slot
}

type slot struct {
	revision uint64
	second   int64
}

// memoSlots is how many records are remembered; a power of two.
const memoSlots = 256

// Find finds the record with tag t in store, or remembers it. revision is the
// table's, asked for before; now is in unix seconds. Whoever changes the table
// changes the revision afterwards, so what was read at a revision holds for as
// long as that stands. What was remembered in another second is read again: no
// mistake about a revision lasts longer.
func (m *Memo) Find(store Store, t Tag, revision uint64, now int64) (Record, bool) {
	if m.slots == nil {
		m.bytes, m.slots = make([]byte, memoSlots*RecordSize), make([]slot, memoSlots)
	}
	n := int(t[len(t)-1]) % memoSlots
	kept := m.bytes[n*RecordSize : (n+1)*RecordSize]
	want := slot{revision, now}
	if m.slots[n] == want && Tag(kept[:16]) == t {
		return Decode(kept)
	}
	bucket := store.Bucket(t.Bucket())
	i := index(bucket, t)
	if i < 0 {
		return Record{}, false
	}
	copy(kept, bucket[i:])
	m.slots[n] = want
	return Decode(kept)
}
