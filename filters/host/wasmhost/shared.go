// Package wasmhost adapts the proxy-wasm host to the packages that call no host. Each call of the host costs about a microsecond, so its
// functions make as few as they can.
package wasmhost

import (
	"unsafe"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"sluice.dev/sluice/filters/credentials/keytable"
)

// Shared is Envoy's shared data: one store for all workers and for keysync,
// because they all have one vm_id. It implements keytable.Store.
type Shared struct{}

// bucketKey is the key of the bucket that is asked for; one for the VM, since it
// would go to the heap.
var bucketKey [keytable.BucketKeyLen]byte

// Bucket returns bucket n, until the next call; nil when it has no records.
func (Shared) Bucket(n uint32) []byte {
	bucketKey = keytable.BucketKey(n)
	b, _, err := sharedData(text(bucketKey[:]), bucketBuffer[:])
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

// text gives b's bytes as a string without a copy; b must not change while the
// string is in use.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
