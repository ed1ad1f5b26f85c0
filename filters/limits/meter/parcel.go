package meter

import (
	"encoding/binary"

	"sluice.dev/sluice/filters/host/wire"
)

// parcelForm opens an encoded parcel.
const parcelForm = "SLU\x01"

// The counters by which a stop knows that all usage has been sent: every batch
// that a worker has begun is settled once, when the control plane has it or the
// edge has given it up.
const (
	BegunMetric   = "sluice_meter_batches_begun_total"
	SettledMetric = "sluice_meter_batches_settled_total"
)

// Limits of a parcel.
const (
	MaxParcel  = 1 << 20 // bytes
	maxBatches = 4096
)

// Parcel is what an edge sends to the control plane at once: the batches of its
// workers. Edge, Boot and Sequence name it, so that it counts once however often
// it is sent.
type Parcel struct {
	Edge     string   // name of the edge
	Boot     string   // differs between two starts of what numbers the parcels
	Sequence uint64   // 1, 2, 3, … within one Boot; gaps are parcels that were given up
	Batches  [][]byte // see Parse
}

// Append encodes p behind dst.
func (p Parcel) Append(dst []byte) []byte {
	dst = append(dst, parcelForm...)
	dst = binary.AppendUvarint(wire.AppendText(wire.AppendText(dst, p.Edge, maxText), p.Boot, maxText), p.Sequence)
	dst = binary.AppendUvarint(dst, uint64(len(p.Batches)))
	for _, b := range p.Batches {
		dst = append(binary.AppendUvarint(dst, uint64(len(b))), b...)
	}
	return dst
}

// ParseParcel reads a parcel and all of its batches. ok is false for anything
// that Append did not write: a parcel is taken whole or not at all. A parcel
// without batches, without an edge or with number 0 is none.
//
// It takes time linear in b, of which it looks at no more than MaxParcel bytes,
// and allocates at most 24 bytes for each of them, and 1 KiB. The batches that
// it returns share b's memory.
func ParseParcel(b []byte) (p Parcel, batches []Batch, ok bool) {
	if len(b) > MaxParcel || len(b) < len(parcelForm) || string(b[:len(parcelForm)]) != parcelForm {
		return Parcel{}, nil, false
	}
	r := reader{wire.NewReader(b[len(parcelForm):])}
	p = Parcel{Edge: r.text(), Boot: r.text(), Sequence: r.Number(1<<63 - 1)}
	n := r.CountOf(maxBatches, batchSize)
	p.Batches, batches = make([][]byte, 0, n), make([]Batch, 0, n)
	for range n {
		raw := r.Bytes(r.Number(MaxBatch))
		batch, good := Parse(raw)
		if !good {
			return Parcel{}, nil, false
		}
		p.Batches, batches = append(p.Batches, raw), append(batches, batch)
	}
	if !r.Done() || len(batches) == 0 || p.Edge == "" || p.Boot == "" || p.Sequence == 0 {
		return Parcel{}, nil, false
	}
	return p, batches, true
}
