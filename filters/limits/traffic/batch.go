package traffic

import (
	"encoding/binary"
	"math"

	"sluice.dev/sluice/filters/host/wire"
	"sluice.dev/sluice/filters/limits/meter"
)

// parcelForm opens an encoded parcel.
const parcelForm = "SLT\x01"

// Limits of what is parsed.
const (
	MaxParcel = 256 << 10 // bytes
	maxCells  = size + meter.Classes
	maxText   = 128 // bytes of a name
)

// Cell is the counts of one key of one batch.
type Cell struct {
	Route  meter.Route
	Method string // "": not known; "other": none of those that are told apart
	Class  uint8  // of the status, see meter.Class
	Reason string // code of the refusal; "": none
	Would  string // code of the refusal in the shadow of requests that passed; "": none
	Passed bool   // the edge filter let these pass
	Counts
}

// Append encodes the contents of t as a batch behind dst.
func Append(dst []byte, t *Table, n *meter.Names, reasons *Reasons) []byte {
	dst, local, count := n.Append(dst, func(use func(route uint32)) { t.each(func(k Key, _ *Counts) { use(k.Route) }) })
	dst = binary.AppendUvarint(dst, uint64(len(reasons.codes)))
	for _, code := range reasons.codes {
		dst = wire.AppendText(dst, code, maxText)
	}
	dst = binary.AppendUvarint(dst, count)
	t.each(func(k Key, c *Counts) {
		passed := byte(0)
		if k.Passed {
			passed = 1
		}
		if c.parts() {
			passed |= withParts
		}
		dst = append(binary.AppendUvarint(dst, local[k.Route]), k.Method, k.Class, k.Reason, passed)
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, c.In), c.Out)
		if dst = c.Upstream.append(c.Took.append(dst)); c.parts() {
			dst = binary.AppendUvarint(dst, c.Open)
		}
	})
	return dst
}

// append encodes h; only the buckets that hold anything.
func (h *Histogram) append(dst []byte) []byte {
	return wire.AppendSparse(binary.AppendUvarint(dst, h.Micros), h.Buckets[:])
}

// Parcel is what keysync hands to the edge's agent at once: batches of workers. Boot
// and Sequence name it, so that it counts once however often it is sent.
type Parcel struct {
	Boot     string // differs between two starts of what numbers the parcels
	Sequence uint64 // 1, 2, 3, … within one Boot
	Batches  []byte // one behind the other
}

// Append encodes p behind dst.
func (p Parcel) Append(dst []byte) []byte {
	dst = binary.AppendUvarint(wire.AppendText(append(dst, parcelForm...), p.Boot, maxText), p.Sequence)
	return append(dst, p.Batches...)
}

// ParseParcel reads a parcel and the cells of all its batches. ok is false for
// anything that Append did not write: a parcel is taken whole or not at all.
//
// It takes time linear in b, of which it looks at no more than MaxParcel bytes, and
// allocates at most 128 bytes for each of them, and 1 KiB.
func ParseParcel(b []byte) (p Parcel, cells []Cell, ok bool) {
	if len(b) > MaxParcel || len(b) < len(parcelForm) || string(b[:len(parcelForm)]) != parcelForm {
		return Parcel{}, nil, false
	}
	r := reader{Reader: wire.NewReader(b[len(parcelForm):])}
	p = Parcel{Boot: r.text(), Sequence: r.Number(math.MaxInt64)}
	p.Batches = r.Rest()
	if r.Failed() || p.Boot == "" || p.Sequence == 0 {
		return Parcel{}, nil, false
	}
	for !r.Done() {
		if cells = r.batch(cells); r.Failed() {
			return Parcel{}, nil, false
		}
	}
	return p, cells, true
}

// The fewest bytes that each of these takes in a batch.
const (
	routeSize  = 2
	reasonSize = 1
	cellSize   = 12
)

// withParts is a bit of a cell that says for how long connections were open.
const withParts = 2

// reader reads what a batch is made of.
type reader struct{ wire.Reader }

func (r *reader) text() string { return r.Text(maxText) }

// batch puts the cells of one batch behind those that there are.
func (r *reader) batch(cells []Cell) []Cell {
	routes := make([]meter.Route, r.CountOf(maxCells, routeSize))
	for i := range routes {
		routes[i] = meter.Route{Name: r.text(), Product: r.text()}
	}
	reasons := make([]string, 1, 8)
	for range r.CountOf(maxReasons, reasonSize) {
		reasons = append(reasons, r.text())
	}
	for range r.CountOf(maxCells, cellSize) {
		cells = append(cells, r.cell(routes, reasons))
	}
	return cells
}

// cell reads one Cell, which has at least one request.
func (r *reader) cell(routes []meter.Route, reasons []string) (c Cell) {
	route := r.Number(maxCells)
	method, class, reason, passed := int(r.Byte()), r.Byte(), int(r.Byte()), r.Byte()
	c.In, c.Out = r.Number(math.MaxInt64), r.Number(math.MaxInt64)
	c.Took, c.Upstream = r.histogram(), r.histogram()
	c.Requests = c.Took.Count()
	if passed&withParts != 0 {
		c.Open = r.Number(math.MaxInt64)
	}
	empty := c.Requests == 0 && passed&withParts == 0
	if r.Failed() || route >= uint64(len(routes)) || class >= meter.Classes || reason >= len(reasons) || passed > 1|withParts || empty || c.Upstream.Count() > c.Requests {
		r.Fail()
		return Cell{}
	}
	c.Route, c.Class, c.Passed = routes[route], class, passed&1 == 1
	c.Would, c.Reason = cutWould(reasons[reason])
	c.Method = methods[min(method, len(methods)-1)]
	return c
}

func (r *reader) histogram() (h Histogram) {
	h.Micros = r.Number(math.MaxInt64)
	r.Sparse(h.Buckets[:])
	return h
}
