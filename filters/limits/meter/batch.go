package meter

import "encoding/binary"

// form opens an encoded batch.
const form = 1

// Limits of a batch, for whoever parses one.
const (
	MaxBatch  = 512 << 10 // bytes
	maxCounts = slots + Classes
	maxText   = 128 // bytes of a name or address
)

// Batch is what one worker has counted since its last batch.
type Batch struct {
	At     int64 // unix seconds at which it was closed
	Counts []Count
	Uses   []Use
}

// Count is the counts of one key of one batch.
type Count struct {
	Account, Key uint64 // as in Key
	Route        Route
	Class        uint8
	Counts
}

// Append encodes the contents of t and u, closed at now, behind dst.
func Append(dst []byte, t *Table, n *Names, u *Uses, now int64) []byte {
	dst = append(dst, form)
	dst = binary.AppendUvarint(dst, uint64(now))
	local := map[uint32]uint64{}
	var routes []uint32
	count := uint64(0)
	t.each(func(k Key, _ *Counts) {
		count++
		if _, ok := local[k.Route]; !ok {
			local[k.Route] = uint64(len(routes))
			routes = append(routes, k.Route)
		}
	})
	dst = binary.AppendUvarint(dst, uint64(len(routes)))
	for _, number := range routes {
		r := n.Route(number)
		dst = text(text(dst, r.Name), r.Product)
	}
	dst = binary.AppendUvarint(dst, count)
	t.each(func(k Key, c *Counts) {
		dst = binary.LittleEndian.AppendUint64(dst, k.Account)
		dst = binary.LittleEndian.AppendUint64(dst, k.Key)
		dst = append(binary.AppendUvarint(dst, local[k.Route]), k.Class)
		dst = c.append(dst)
	})
	dst = binary.AppendUvarint(dst, uint64(len(u.list)))
	for _, use := range u.list {
		dst = binary.LittleEndian.AppendUint64(dst, use.Key)
		dst = text(binary.AppendUvarint(dst, uint64(use.At)), use.Address)
	}
	return dst
}

// append encodes c; of the histogram only the buckets that hold anything.
func (c *Counts) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, c.Requests)
	dst = binary.AppendUvarint(dst, c.Refused)
	dst = binary.AppendUvarint(dst, c.In)
	dst = binary.AppendUvarint(dst, c.Out)
	var mask uint64
	for i, n := range c.Latency {
		if n > 0 {
			mask |= 1 << i
		}
	}
	dst = binary.AppendUvarint(dst, mask)
	for _, n := range c.Latency {
		if n > 0 {
			dst = binary.AppendUvarint(dst, uint64(n))
		}
	}
	return dst
}

// text appends s, cut to maxText bytes.
func text(dst []byte, s string) []byte {
	s = s[:min(len(s), maxText)]
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}
