// Package wasmhost is the one adapter between the pure packages and the
// proxy-wasm host. Each call of the host costs about a microsecond, so its
// functions make as few as they can.
package wasmhost

import (
	"unsafe"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"sluice.dev/sluice/filters/keytable"
	"sluice.dev/sluice/filters/ratelimit"
)

// Shared is Envoy's shared data: one store for all workers and for keysync,
// because they all have one vm_id. It implements keytable.Store.
type Shared struct{}

// Bucket returns bucket n; nil when it has no records.
func (Shared) Bucket(n uint32) []byte {
	k := keytable.BucketKey(n)
	b, _, err := proxywasm.GetSharedData(text(k[:]))
	if err != nil || len(b) < keytable.RecordSize {
		return nil
	}
	return b
}

// empty stands for a bucket without records: shared data has no delete, and
// does not take a value without bytes.
var empty = []byte{0}

// SetBucket replaces bucket n.
func (Shared) SetBucket(n uint32, b []byte) {
	if len(b) == 0 {
		b = empty
	}
	k := keytable.BucketKey(n)
	overwrite(text(k[:]), b)
}

// overwrite sets a value without a compare: keysync is the only writer. Envoy
// takes 0 for "do not compare"; the SDK's test host compares with it.
func overwrite(key string, b []byte) {
	if err := proxywasm.SetSharedData(key, b, 0); err == nil {
		return
	}
	_, cas, _ := proxywasm.GetSharedData(key)
	if err := proxywasm.SetSharedData(key, b, cas); err != nil {
		proxywasm.LogCritical("shared data: " + err.Error())
	}
}

// Record finds the record with tag t.
func (s Shared) Record(t keytable.Tag) (keytable.Record, bool) {
	return keytable.Find(s.Bucket(t.Bucket()), t)
}

// State returns how far the feed has been read.
func (Shared) State() keytable.State {
	b, _, err := proxywasm.GetSharedData(keytable.StateKey)
	if err != nil {
		return keytable.State{}
	}
	return keytable.ParseState(b)
}

// SetState stores how far the feed has been read.
func (Shared) SetState(st keytable.State) {
	overwrite(keytable.StateKey, st.Append(nil))
}

// Ready reports whether the table has been loaded once.
func (s Shared) Ready() bool { return s.State().Ready }

// maxTries bounds how often Take competes with other workers for one window.
// After that it writes over the other's count: one request too few is counted,
// where waiting on would hold up every request of this worker.
const maxTries = 16

// Take counts one request in the window of id; see ratelimit.Window.Take.
func (Shared) Take(k ratelimit.Kind, id ratelimit.ID, l ratelimit.Limit, now int64) ratelimit.Result {
	var r ratelimit.Result
	for try := range maxTries {
		key, w, cas := window(k, id, now)
		r = w.Take(l, now)
		if !r.OK {
			return r // nothing changed that matters
		}
		if try == maxTries-1 {
			cas = 0
		}
		if proxywasm.SetSharedData(text(key[:]), w, cas) == nil {
			break
		}
	}
	return r
}

// window finds the window of id, or the best place for a new one.
func window(k ratelimit.Kind, id ratelimit.ID, now int64) (key [ratelimit.PlaceKeyLen]byte, w ratelimit.Window, cas uint32) {
	least := ^uint32(0)
	for n := range ratelimit.Probes {
		place := ratelimit.Place(k, id, n)
		b, c, err := proxywasm.GetSharedData(text(place[:]))
		got := ratelimit.Window(b)
		if err == nil && got.Is(id) {
			return place, got, c
		}
		if err != nil || got.Free(now) {
			return place, ratelimit.New(id), c
		}
		if got.Total() < least {
			key, cas, least = place, c, got.Total()
		}
	}
	return key, ratelimit.New(id), cas
}

// text gives b's bytes as a string without a copy; b must not change while the
// string is in use.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
