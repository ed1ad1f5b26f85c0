package wasmhost

import (
	"unsafe"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"sluice.dev/sluice/filters/limits/ratelimit"
)

// What the host returns to each request goes to a place of its own, so that a
// request leaves next to nothing behind: TinyGo searches its heap block by block
// for free memory, and collects it when there is none. A value stays until the same is
// asked for again; what is to be kept longer must be copied. Longer values than
// these go to the heap.
var (
	routeBuffer  [256]byte
	headerBuffer [1024]byte
	peerBuffer   [1024]byte
	statusBuffer [16]byte
	bucketBuffer [4096]byte
	windowBuffer [ratelimit.MaxSize]byte
)

// hostBuffer is where the value of the call under way goes; nil: to the heap.
var hostBuffer []byte

// sharedData reads a value of the shared data into the buffer given.
func sharedData(key string, into []byte) (value []byte, cas uint32, err error) {
	hostBuffer = into
	value, cas, err = proxywasm.GetSharedData(key)
	hostBuffer = nil
	return value, cas, err
}

// malloc is how the host asks for memory for what it returns. Envoy prefers it to
// proxy_on_memory_allocate of the SDK, which always takes from the heap.
//
//export malloc
func malloc(size uint32) unsafe.Pointer {
	if int(size) > len(hostBuffer) {
		hostBuffer = make([]byte, size)
	}
	at := unsafe.Pointer(unsafe.SliceData(hostBuffer))
	hostBuffer = nil
	return at
}
