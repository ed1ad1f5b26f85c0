package wasmhost

import (
	"testing"
	"unsafe"
)

// TestMalloc: what the host returns goes to the buffer that stands ready, once; what
// finds none, or too little, goes to the heap.
func TestMalloc(t *testing.T) {
	var place [8]byte
	own := unsafe.Pointer(&place[0])
	for _, c := range []struct {
		name   string
		buffer []byte
		size   uint32
		own    bool
	}{
		{"fits", place[:], 8, true},
		{"shorter", place[:], 1, true},
		{"too long", place[:], 9, false},
		{"no buffer", nil, 1, false},
	} {
		hostBuffer = c.buffer
		at := malloc(c.size)
		if (at == own) != c.own || at == nil || hostBuffer != nil {
			t.Errorf("%s: in its place %v, buffer left %v", c.name, at == own, hostBuffer != nil)
		}
		clear(unsafe.Slice((*byte)(at), c.size))
	}
}
