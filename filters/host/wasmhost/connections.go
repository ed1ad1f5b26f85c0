package wasmhost

import (
	"encoding/binary"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"sluice.dev/sluice/filters/limits/connections"
	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/limits/sharedlimit"
)

// Connections are the records of open connections in shared data; it implements
// connections.Store. Connections open seldom: nothing here is kept off the heap.
type Connections struct{}

// Get reads a record.
func (Connections) Get(p sharedlimit.Place) (connections.Record, uint32) {
	b, version, err := proxywasm.GetSharedData(string(p[:]))
	if err != nil {
		return nil, 0
	}
	return b, version
}

// Set writes a record.
func (Connections) Set(p sharedlimit.Place, r connections.Record, version uint32) bool {
	return proxywasm.SetSharedData(string(p[:]), r, version) == nil
}

// ShareConnections puts a place on the list of what the other edges should hear of.
func ShareConnections(p sharedlimit.Place) { addHot(p) }

// workersKey is where the numbers of workers are counted.
const workersKey = "workers"

// NumberWorker returns a number that no other VM of this Envoy has had.
func NumberWorker() uint32 {
	for {
		b, cas, _ := proxywasm.GetSharedData(workersKey)
		next := uint32(1)
		if len(b) == 4 {
			next = binary.LittleEndian.Uint32(b) + 1
		} else {
			cas = connections.Absent
		}
		if proxywasm.SetSharedData(workersKey, binary.LittleEndian.AppendUint32(nil, next), cas) == nil {
			return next
		}
	}
}

// Share returns what this edge has counted in a place at now, in unix seconds, for the
// other edges; ok is false when there is nothing.
func (Shared) Share(p sharedlimit.Place, now int64) (e sharedlimit.Entry, ok bool) {
	if p[0] == byte(connections.Kind) {
		r := connections.Get(Connections{}, p)
		if r == nil {
			return e, false
		}
		return sharedlimit.Entry{ID: r.ID(), Others: r.Share(now)}, true
	}
	b, _, err := proxywasm.GetSharedData(text(p[:]))
	if w := ratelimit.Window(b); err == nil && w.Whole() {
		return sharedlimit.Entry{ID: w.ID(), Others: w.Share()}, true
	}
	return e, false
}

// SetOthers puts what other edges have counted behind the window, or into the record, of
// id, and returns its place.
func (Shared) SetOthers(id ratelimit.ID, o ratelimit.Others) sharedlimit.Place {
	if connections.IsID(id) {
		return connections.SetOthers(Connections{}, id, o, Now())
	}
	return setOthers(id, o)
}
