package wasmhost

import (
	"unsafe"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"sluice.dev/sluice/filters/limits/ratelimit"
)

// What the host returns to each request goes to a place of its own, so that a
// request leaves next to nothing behind: TinyGo searches its heap block by block
// for room, and collects it when there is none. A value stays until the same is
// asked for again; what is to be kept longer must be copied. Longer values than
// these go to the heap.
var (
	routeRoom  [256]byte
	headerRoom [1024]byte
	statusRoom [16]byte
	bucketRoom [4096]byte
	windowRoom [ratelimit.MaxSize]byte
)

// room is where the value of the call under way goes; nil: to the heap.
var room []byte

// sharedData reads a value of the shared data into the room given.
func sharedData(key string, into []byte) (value []byte, cas uint32, err error) {
	room = into
	value, cas, err = proxywasm.GetSharedData(key)
	room = nil
	return value, cas, err
}

// malloc is how the host asks for room for what it returns. Envoy prefers it to
// proxy_on_memory_allocate of the SDK, which always takes from the heap.
//
//export malloc
func malloc(size uint32) unsafe.Pointer {
	if int(size) > len(room) {
		room = make([]byte, size)
	}
	at := unsafe.Pointer(unsafe.SliceData(room))
	room = nil
	return at
}
