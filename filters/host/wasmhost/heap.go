package wasmhost

// GrowHeap makes this VM's heap large enough for size more bytes, and leaves them free.
// It is for the start of a VM: by itself TinyGo's heap begins with what is left of the
// program's last page of memory, and doubles only when a collection finds less than a third
// of it free, so a filter whose state fills half of such a heap collects every few requests.
func GrowHeap(size int) {
	hold(make([]byte, size))
	hold(nil)
}

// held is what hold was last given.
var held []byte

// hold is no part of GrowHeap, so that no compiler leaves out what is given up at once.
//
//go:noinline
func hold(b []byte) { held = b }
