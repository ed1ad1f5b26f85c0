package wasmhost

import "testing"

// The room is taken in one piece, and given up at once: nothing holds it.
func TestGrowHeap(t *testing.T) {
	if n := testing.AllocsPerRun(1, func() { GrowHeap(1 << 20) }); n != 1 || held != nil {
		t.Errorf("%v allocations, %d bytes kept", n, len(held))
	}
}
