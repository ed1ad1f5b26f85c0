package harness

import (
	"slices"
	"testing"
)

func TestPool(t *testing.T) {
	t.Parallel()
	p := Pool[int]{Most: 2}
	if v, ok := p.Take(); ok {
		t.Errorf("an empty pool has %d", v)
	}
	for v, kept := range []bool{true, true, false} {
		if p.Give(v) != kept {
			t.Errorf("%d is kept: %v, want %v", v, !kept, kept)
		}
	}
	first, _ := p.Take()
	if !p.Give(first) {
		t.Error("there is no room for what was taken")
	}
	all := p.Drain()
	slices.Sort(all)
	if _, ok := p.Take(); ok || !slices.Equal(all, []int{0, 1}) {
		t.Errorf("drained %v", all)
	}
	if new(Pool[int]).Give(1) {
		t.Error("the zero pool keeps something")
	}
}
