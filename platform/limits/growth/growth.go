// Package growth holds parsers of outside input to what they say they cost. It
// counts what a call allocates, which no clock and no busy machine changes.
package growth

import "runtime"

// TB is what Linear needs of a test.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// tries is how often a call is measured: the smallest figure is its own, what
// other goroutines allocate meanwhile comes on top.
const tries = 3

// Allocated returns how many bytes and how many objects f allocates, garbage
// included. Other goroutines' allocations count too, so the caller lets none run.
func Allocated(f func()) (bytes, objects uint64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, after.Mallocs - before.Mallocs
}

// Linear runs f, which reads an input of n bytes, and fails the test when f
// allocates more than multiple bytes for each of them, and constant besides.
// A fuzz target that is not parallel calls it around its parser. f runs again
// when the figure is too high, three times at most. With -race three times as much is let pass.
func Linear(t TB, n, multiple, constant int, f func()) {
	t.Helper()
	limit := instrumented * (uint64(multiple)*uint64(n) + uint64(constant))
	var least uint64
	for range tries {
		got, _ := Allocated(f)
		if got <= limit {
			return
		}
		if least == 0 || got < least {
			least = got
		}
	}
	t.Errorf("%d bytes of input allocate %d bytes, more than %d × %d + %d", n, least, multiple, n, constant)
}
