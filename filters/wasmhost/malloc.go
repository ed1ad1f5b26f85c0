//go:build tinygo

package wasmhost

import "unsafe"

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
