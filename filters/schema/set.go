package schema

import "encoding/binary"

// MaxSet bounds the bytes of all tables of an edge.
const MaxSet = 4 << 20

// AppendSet appends one route's table to the encoding of a set. A set is what the
// filter is configured with: the base address of the documentation, then keys of routes with
// their tables.
func AppendSet(dst []byte, part []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(part)))
	return append(dst, part...)
}

// Set has the tables of all routes that ask for checks.
type Set struct {
	DocsBase string
	tables   map[string]*Table
}

// Table returns the table of a route by its key; nil: there is none, and the request
// must be refused.
func (s *Set) Table(key string) *Table { return s.tables[key] }

// ParseSet reads what AppendSet wrote; ok is false when it is none. It takes time
// and memory linear in b.
func ParseSet(b []byte) (s *Set, ok bool) {
	base, b, ok := part(b)
	if !ok {
		return nil, false
	}
	s = &Set{DocsBase: string(base), tables: map[string]*Table{}}
	for len(b) > 0 {
		var key, table []byte
		if key, b, ok = part(b); !ok {
			return nil, false
		}
		if table, b, ok = part(b); !ok {
			return nil, false
		}
		t := Parse(table)
		if t == nil || s.tables[string(key)] != nil {
			return nil, false
		}
		s.tables[string(key)] = t
	}
	return s, true
}

// part reads one part of a set.
func part(b []byte) (p, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := binary.LittleEndian.Uint32(b)
	if uint64(n) > uint64(len(b)-4) {
		return nil, nil, false
	}
	return b[4 : 4+n], b[4+n:], true
}
