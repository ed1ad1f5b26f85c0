package meter

import (
	"encoding/binary"

	"sluice.dev/sluice/filters/host/wire"
)

// What opens an encoded batch. One that has parts of connections says more of each count;
// replicas of the release before read the others.
const (
	form      = 1
	partsForm = 2
)

// Limits of a batch, for whoever parses one.
const (
	MaxBatch  = 512 << 10 // bytes
	maxCounts = size + Classes
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
	parts := t.partial()
	if parts {
		dst = append(dst, partsForm)
	} else {
		dst = append(dst, form)
	}
	dst = binary.AppendUvarint(dst, uint64(now))
	dst, local, count := n.Append(dst, func(use func(route uint32)) { t.each(func(k Key, _ *Counts) { use(k.Route) }) })
	dst = binary.AppendUvarint(dst, count)
	t.each(func(k Key, c *Counts) {
		dst = binary.LittleEndian.AppendUint64(dst, k.Account)
		dst = binary.LittleEndian.AppendUint64(dst, k.Key)
		dst = append(binary.AppendUvarint(dst, local[k.Route]), k.Class)
		if dst = c.append(dst); parts {
			dst = binary.AppendUvarint(dst, c.Open)
		}
	})
	dst = binary.AppendUvarint(dst, uint64(len(u.list)))
	for _, use := range u.list {
		dst = binary.LittleEndian.AppendUint64(dst, use.Key)
		dst = wire.AppendText(binary.AppendUvarint(dst, uint64(use.At)), use.Address, maxText)
	}
	return dst
}

// append encodes c; of the histogram only the buckets that hold anything.
func (c *Counts) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, c.Requests)
	dst = binary.AppendUvarint(dst, c.Refused)
	dst = binary.AppendUvarint(dst, c.In)
	dst = binary.AppendUvarint(dst, c.Out)
	return wire.AppendSparse(dst, c.Latency[:])
}
