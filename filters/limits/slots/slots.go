// Package slots keeps a value for each of a bounded number of keys in a number of bytes
// that does not depend on the traffic. It has no pointers but to its slots, so a garbage
// collection that finds none in keys and values does not look into them.
package slots

// probes is how many slots are looked at for a key.
const probes = 16

// Key is what values are kept by.
type Key interface {
	comparable
	// Hash mixes the key: of equal keys it is equal.
	Hash() uint32
}

// Table keeps values by key, in slots found by open addressing.
type Table[K Key, V any] struct {
	entries []entry[K, V]
	used    []uint16 // places in entries, in the order in which they were taken
}

type entry[K Key, V any] struct {
	key   K
	taken bool
	value V
}

// New returns an empty table of size slots, a power of two of at most 65,536. It gives
// three quarters of them away, which keeps looking short.
func New[K Key, V any](size int) Table[K, V] {
	return Table[K, V]{entries: make([]entry[K, V], size), used: make([]uint16, 0, size*3/4)}
}

// Size is the number of slots.
func (t *Table[K, V]) Size() int { return len(t.entries) }

// Full reports whether no further key gets a slot.
func (t *Table[K, V]) Full() bool { return len(t.used) == cap(t.used) }

// Find returns the value of k, the zero value at first; nil when k is not there and has
// no room.
func (t *Table[K, V]) Find(k K) *V {
	h, mask := k.Hash(), uint32(len(t.entries)-1)
	for n := range uint32(probes) {
		e := &t.entries[(h+n)&mask]
		if !e.taken {
			if t.Full() {
				return nil
			}
			e.key, e.taken = k, true
			t.used = append(t.used, uint16((h+n)&mask))
			return &e.value
		}
		if e.key == k {
			return &e.value
		}
	}
	return nil
}

// Each calls f for every key and its value, in the order in which they came.
func (t *Table[K, V]) Each(f func(K, *V)) {
	for _, i := range t.used {
		f(t.entries[i].key, &t.entries[i].value)
	}
}

// Reset forgets everything.
func (t *Table[K, V]) Reset() {
	for _, i := range t.used {
		t.entries[i] = entry[K, V]{}
	}
	t.used = t.used[:0]
}
