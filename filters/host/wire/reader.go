// Package wire reads the binary messages of the edge (policies, usage and counts), and
// writes what several of them are made of.
package wire

import (
	"encoding/binary"
	"math"
)

// Reader takes values off the front of some bytes. Once one does not fit it has
// failed and gives zeros only, so that a caller may read on and ask at the end.
// It never copies: what Bytes returns is part of what is read. Only Text
// allocates, as many bytes as the text has; each value takes time linear in what
// it takes off.
type Reader struct {
	b      []byte
	failed bool
}

// NewReader returns a Reader of b.
func NewReader(b []byte) Reader { return Reader{b: b} }

// Fail makes r a failed one: a value that was read makes no sense.
func (r *Reader) Fail() { r.failed, r.b = true, nil }

// Failed reports whether a value did not fit.
func (r *Reader) Failed() bool { return r.failed }

// Done reports whether everything was read and fitted.
func (r *Reader) Done() bool { return !r.failed && len(r.b) == 0 }

// Number reads an unsigned varint of at most most.
func (r *Reader) Number(most uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > most {
		r.Fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// Count reads how many values follow: at most most, and no more than the bytes
// that are left, so that no message makes its reader allocate more than it
// weighs.
func (r *Reader) Count(most uint64) uint64 { return r.Number(min(most, uint64(len(r.b)))) }

// CountOf is Count of values that take least bytes or more each.
func (r *Reader) CountOf(most, least uint64) uint64 {
	return r.Number(min(most, uint64(len(r.b))/least))
}

// Bytes takes n bytes; nil when there are not so many.
func (r *Reader) Bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.Fail()
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

// Rest returns what is left, and takes nothing.
func (r *Reader) Rest() []byte { return r.b }

// Text reads a text of at most most bytes, behind its length.
func (r *Reader) Text(most uint64) string { return string(r.Bytes(r.Number(most))) }

// Byte takes one byte.
func (r *Reader) Byte() byte {
	if v := r.Bytes(1); len(v) == 1 {
		return v[0]
	}
	return 0
}

// Uint32 takes four bytes, the lowest first.
func (r *Reader) Uint32() uint32 {
	if v := r.Bytes(4); len(v) == 4 {
		return binary.LittleEndian.Uint32(v)
	}
	return 0
}

// Uint64 takes eight bytes, the lowest first.
func (r *Reader) Uint64() uint64 {
	if v := r.Bytes(8); len(v) == 8 {
		return binary.LittleEndian.Uint64(v)
	}
	return 0
}

// Sparse reads what AppendSparse wrote of as many counts, at most 63, and returns their
// sum.
func (r *Reader) Sparse(counts []uint32) (sum uint64) {
	mask := r.Number(1<<len(counts) - 1)
	for i := range counts {
		if mask&(1<<i) != 0 {
			counts[i] = uint32(r.Number(math.MaxUint32))
			sum += uint64(counts[i])
		}
	}
	return sum
}

// AppendSparse encodes at most 63 counts behind dst: which of them are not 0, and those.
func AppendSparse(dst []byte, counts []uint32) []byte {
	var mask uint64
	for i, n := range counts {
		if n > 0 {
			mask |= 1 << i
		}
	}
	dst = binary.AppendUvarint(dst, mask)
	for _, n := range counts {
		if n > 0 {
			dst = binary.AppendUvarint(dst, uint64(n))
		}
	}
	return dst
}

// AppendText encodes s, cut to most bytes, behind dst, as Reader.Text reads it.
func AppendText(dst []byte, s string, most int) []byte {
	s = s[:min(len(s), most)]
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}
