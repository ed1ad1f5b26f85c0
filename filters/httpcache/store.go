package httpcache

import (
	"encoding/binary"
	"slices"
)

// What is kept lies in sets of ways, found by key, each of which has its part of the room,
// so that memory has a bound whatever is asked for. In each set an account, or a route
// whose answers are nobody's, may have its share and no more: who asks for ever new
// addresses pushes out what is its own.
const (
	sets       = 16
	ways       = 256
	SetBytes   = 4 << 20
	ShareBytes = SetBytes * 3 / 8 // more than the largest answer takes
	shareWays  = ways * 3 / 8
	// Room is how many bytes of answers an edge keeps at most.
	Room = sets * SetBytes
)

// Data is the memory that all workers of an edge share. Each write of a value gives it a
// version, which is never 0.
type Data interface {
	// Get reads a value; nil and 0: there is none.
	Get(key string) (value []byte, version uint32)
	// Set writes a value if its version is the one given, or it is not there; version
	// 0: in any case.
	Set(key string, value []byte, version uint32) bool
}

// slot says what lies in a way of a set. Of size 0: nothing.
type slot struct {
	key             [16]byte
	stored, expires uint32 // unix seconds
	size, share     uint32
}

const slotSize = 32

// absent is the version with which a value is written where none is; no write has it but
// one in 2^32.
const absent = 1 << 31

// maxTries bounds how often one of several workers competes for one set.
const maxTries = 8

// Find returns the answer of key at now, in unix seconds.
func Find(d Data, key Key, now int64) (e Entry, ok bool) {
	set := key[0] % sets
	b, _ := d.Get(indexKey(set))
	for way := range len(b) / slotSize {
		s := b[way*slotSize : (way+1)*slotSize]
		if string(s[:16]) != string(key[:16]) {
			continue
		}
		if int64(binary.LittleEndian.Uint32(s[20:])) <= now {
			return e, false
		}
		data, _ := d.Get(dataKey(set, uint8(way)))
		e, ok = ParseEntry(data)
		return e, ok && e.Key == key
	}
	return e, false
}

// Put keeps e for as many seconds, in the share of whoever's it is. It returns by how many
// bytes there is more now than before; ok is false when e is not kept.
func Put(d Data, e Entry, share uint32, lifetime uint32, now int64) (more int, ok bool) {
	data := e.Append(make([]byte, 0, 512+len(e.Body)))
	if len(data) > ShareBytes {
		return 0, false
	}
	set := e.Key[0] % sets
	add := slot{stored: uint32(now), expires: uint32(now) + lifetime, size: uint32(len(data)), share: share}
	copy(add.key[:], e.Key[:])
	for range maxTries {
		b, version := d.Get(indexKey(set))
		list := parseIndex(b)
		before := total(list)
		way, gone := place(list, add, now)
		if version == 0 {
			version = absent
		}
		if !d.Set(indexKey(set), appendIndex(list), version) {
			continue
		}
		for _, g := range gone {
			if g != way {
				d.Set(dataKey(set, uint8(g)), nothing, 0)
			}
		}
		d.Set(dataKey(set, uint8(way)), data, 0)
		settle(d, set, way, add, e.Key)
		return total(list) - before, true
	}
	return 0, false
}

// nothing stands where nothing is kept: shared data has no delete.
var nothing = []byte{0}

// settle takes back what was just written, if another worker has given its place away
// meanwhile: else the set would hold more than its index says.
func settle(d Data, set uint8, way int, mine slot, key Key) {
	b, _ := d.Get(indexKey(set))
	if list := parseIndex(b); list[way].key == mine.key {
		return
	}
	data, version := d.Get(dataKey(set, uint8(way)))
	if e, ok := ParseEntry(data); ok && e.Key == key {
		d.Set(dataKey(set, uint8(way)), nothing, version)
	}
}

// place makes room in list for add, and puts it there. It returns the way, and those from
// which something has gone.
func place(list []slot, add slot, now int64) (way int, gone []int) {
	drop := func(i int) {
		list[i] = slot{}
		gone = append(gone, i)
	}
	for i, s := range list {
		if s.size > 0 && (int64(s.expires) <= now || s.key == add.key) {
			drop(i)
		}
	}
	own := func(s slot) bool { return s.share == add.share }
	for bytes, n := taken(list, own); bytes+int(add.size) > ShareBytes || n >= shareWays; bytes, n = taken(list, own) {
		drop(oldest(list, own))
	}
	all := func(slot) bool { return true }
	for bytes, n := taken(list, all); bytes+int(add.size) > SetBytes || n >= ways; bytes, n = taken(list, all) {
		drop(oldest(list, all))
	}
	way = slices.IndexFunc(list, func(s slot) bool { return s.size == 0 })
	list[way] = add
	return way, gone
}

// taken counts what lies in those ways of list that are of some kind.
func taken(list []slot, of func(slot) bool) (bytes, n int) {
	for _, s := range list {
		if s.size > 0 && of(s) {
			bytes, n = bytes+int(s.size), n+1
		}
	}
	return bytes, n
}

// oldest is the way of some kind in which something has lain longest.
func oldest(list []slot, of func(slot) bool) int {
	at := -1
	for i, s := range list {
		if s.size > 0 && of(s) && (at < 0 || s.stored < list[at].stored) {
			at = i
		}
	}
	return at
}

func total(list []slot) int {
	bytes, _ := taken(list, func(slot) bool { return true })
	return bytes
}

func parseIndex(b []byte) []slot {
	list := make([]slot, ways)
	for i := range min(ways, len(b)/slotSize) {
		s := b[i*slotSize:]
		copy(list[i].key[:], s)
		list[i].stored, list[i].expires = binary.LittleEndian.Uint32(s[16:]), binary.LittleEndian.Uint32(s[20:])
		list[i].size, list[i].share = binary.LittleEndian.Uint32(s[24:]), binary.LittleEndian.Uint32(s[28:])
	}
	return list
}

// appendIndex encodes list, without the empty end of it.
func appendIndex(list []slot) []byte {
	last := len(list)
	for last > 1 && list[last-1].size == 0 {
		last--
	}
	b := make([]byte, 0, last*slotSize)
	for _, s := range list[:last] {
		b = append(b, s.key[:]...)
		for _, n := range [...]uint32{s.stored, s.expires, s.size, s.share} {
			b = binary.LittleEndian.AppendUint32(b, n)
		}
	}
	return b
}

func indexKey(set uint8) string           { return string([]byte{'i', set}) }
func dataKey(set uint8, way uint8) string { return string([]byte{'d', set, way}) }
