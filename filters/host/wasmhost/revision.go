package wasmhost

import "github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"

// Revision is the revision of the table of records: a counter that keysync moves
// after each change, so that workers can remember records (keytable.Memo). It is
// a metric, because that is the only number which all VMs of an Envoy share and
// which a worker reads without memory of its own: the host makes room for anything
// longer by a call into the VM, which costs four times as much.
type Revision struct{ counter proxywasm.MetricCounter }

// DefineRevision returns the revision, the same one in all VMs of an Envoy.
func DefineRevision() Revision {
	return Revision{proxywasm.DefineCounterMetric("sluice_records_revision")}
}

// Move is called after a change of the table.
func (r Revision) Move() { r.counter.Increment(1) }

// Now is the present revision.
func (r Revision) Now() uint64 { return r.counter.Value() }
