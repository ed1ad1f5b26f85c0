package keytable

import "encoding/binary"

// Page is one answer of the key feed.
//
// A snapshot page holds every record whose bucket is in Lo..Hi, in the order of
// tags, and replaces whatever an edge has there. A delta page holds the changes
// after a position in the order in which they were committed; each record is
// the newest state of its tag, so applying a page twice does no harm.
type Page struct {
	Snapshot bool
	Last     bool   // nothing more to fetch at present
	Epoch    uint64 // identity of the history; positions of two epochs do not compare
	Position uint64 // delta: the edge is here after the page; snapshot: go on from here after the last page
	Lo, Hi   uint32 // snapshot: buckets covered, both included
	Cursor   Tag    // snapshot: ask for the records after this one
	Records  []byte // a whole number of records
}

const (
	pageMagic  = "SLF1"
	pageHeader = 52
	// MaxPageRecords bounds a page to about 900 kB: Envoy hands a body over whole.
	MaxPageRecords = 14000
)

// Append appends the page's bytes to dst.
func (p Page) Append(dst []byte) []byte {
	var flags byte
	if p.Snapshot {
		flags |= 1
	}
	if p.Last {
		flags |= 2
	}
	dst = append(dst, pageMagic...)
	dst = append(dst, flags, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint64(dst, p.Epoch)
	dst = binary.LittleEndian.AppendUint64(dst, p.Position)
	dst = binary.LittleEndian.AppendUint32(dst, p.Lo)
	dst = binary.LittleEndian.AppendUint32(dst, p.Hi)
	dst = append(dst, p.Cursor[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(p.Records)/RecordSize))
	return append(dst, p.Records...)
}

// ParsePage reads a page; its Records share b's memory. ok is false when b is
// not a whole page, for instance because the body was cut short. It looks at the
// head only, and allocates nothing.
func ParsePage(b []byte) (p Page, ok bool) {
	if len(b) < pageHeader || string(b[:4]) != pageMagic {
		return p, false
	}
	if n := binary.LittleEndian.Uint32(b[48:]); n > MaxPageRecords || len(b) != pageHeader+int(n)*RecordSize {
		return p, false
	}
	p.Snapshot, p.Last = b[4]&1 != 0, b[4]&2 != 0
	p.Epoch = binary.LittleEndian.Uint64(b[8:])
	p.Position = binary.LittleEndian.Uint64(b[16:])
	p.Lo = binary.LittleEndian.Uint32(b[24:])
	p.Hi = binary.LittleEndian.Uint32(b[28:])
	copy(p.Cursor[:], b[32:48])
	p.Records = b[pageHeader:]
	return p, p.Lo <= p.Hi && p.Hi < Buckets
}
