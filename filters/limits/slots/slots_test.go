package slots

import "testing"

// number is a key whose hash is as bad as its test wants.
type number struct{ n, hash uint32 }

func (k number) Hash() uint32 { return k.hash }

func TestEachKeyHasAValueOfItsOwn(t *testing.T) {
	t.Parallel()
	table := New[number, int](64)
	for n := range uint32(10) {
		*table.Find(number{n, 63}) += int(n) // all probe around the end
	}
	for n := range uint32(10) {
		if got := *table.Find(number{n, 63}); got != int(n) {
			t.Errorf("%d is %d", n, got)
		}
	}
	var order []uint32
	table.Each(func(k number, _ *int) { order = append(order, k.n) })
	if len(order) != 10 || order[0] != 0 || order[9] != 9 {
		t.Error(order)
	}
	table.Reset()
	if v := table.Find(number{3, 63}); *v != 0 {
		t.Error("a value outlived Reset")
	}
}

func TestWhatHasNoRoom(t *testing.T) {
	t.Parallel()
	table := New[number, int](64)
	for n := range uint32(probes) {
		if table.Find(number{n, 5}) == nil {
			t.Fatal(n)
		}
	}
	if table.Find(number{probes, 5}) != nil || table.Full() {
		t.Error("a key was looked for further than the probes go")
	}
	for n := uint32(0); !table.Full(); n++ {
		if n > 64 {
			t.Fatal("never full")
		}
		table.Find(number{n, n})
	}
	if table.Find(number{1000, 63}) != nil || table.Find(number{3, 5}) == nil || table.Size() != 64 {
		t.Error("a full table took a key, lost one or grew")
	}
}
