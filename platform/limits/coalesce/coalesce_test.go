package coalesce

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

var errBad = errors.New("a bad argument")

// recorder doubles numbers, refuses negative ones, and remembers its batches.
// While held is open it waits.
type recorder struct {
	mu      sync.Mutex
	batches [][]int
	started chan struct{}
	held    chan struct{}
}

func (r *recorder) do(_ context.Context, args []int) ([]int, error) {
	r.mu.Lock()
	r.batches = append(r.batches, slices.Clone(args))
	r.mu.Unlock()
	if r.started != nil {
		r.started <- struct{}{}
		<-r.held
	}
	doubled := make([]int, len(args))
	for i, a := range args {
		if a < 0 {
			return nil, errBad
		}
		doubled[i] = 2 * a
	}
	return doubled, nil
}

func TestACallAloneIsABatchOfOne(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	g := Group[int, int]{Do: r.do}
	for i := range 3 {
		if got, err := g.Call(t.Context(), i); got != 2*i || err != nil {
			t.Errorf("%d, %v", got, err)
		}
	}
	if len(r.batches) != 3 {
		t.Errorf("batches %v", r.batches)
	}
}

// waitFor returns once n calls are in the queue.
func (g *Group[T, R]) waitFor(n int) {
	for {
		g.mu.Lock()
		queued := len(g.queue)
		g.mu.Unlock()
		if queued == n {
			return
		}
		runtime.Gosched()
	}
}

// gathered makes the calls while an earlier one is under way, and returns their
// results and errors.
func gathered(t *testing.T, r *recorder, g *Group[int, int], args ...int) ([]int, []error) {
	t.Helper()
	r.started, r.held = make(chan struct{}, 100), make(chan struct{})
	g.Do, g.Parallel = r.do, 1
	results, errs := make([]int, len(args)), make([]error, len(args))
	var calls sync.WaitGroup
	calls.Go(func() { _, _ = g.Call(t.Context(), 0) })
	<-r.started
	for i, a := range args {
		calls.Go(func() { results[i], errs[i] = g.Call(t.Context(), a) })
	}
	g.waitFor(len(args))
	close(r.held)
	calls.Wait()
	return results, errs
}

func TestCallsThatWaitGoTogether(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	results, errs := gathered(t, r, &Group[int, int]{Max: 4}, 1, 2, 3, 4, 5, 6)
	for i := range results {
		if results[i] != 2*(i+1) || errs[i] != nil {
			t.Errorf("call %d: %d, %v", i+1, results[i], errs[i])
		}
	}
	if len(r.batches) != 3 || len(r.batches[1]) != 4 || len(r.batches[2]) != 2 {
		t.Errorf("batches %v", r.batches)
	}
}

func TestOneBadCallSpoilsNoOther(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	results, errs := gathered(t, r, &Group[int, int]{}, 1, -2, 3)
	for i, want := range []int{2, 0, 6} {
		if results[i] != want || (errs[i] != nil) != (want == 0) {
			t.Errorf("call %d: %d, %v", i, results[i], errs[i])
		}
	}
	if !errors.Is(errs[1], errBad) {
		t.Errorf("the bad call: %v", errs[1])
	}
}

func TestAnErrorOfNoCallIsThatOfAll(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	_, errs := gathered(t, r, &Group[int, int]{Separate: func(err error) bool { return !errors.Is(err, errBad) }}, 1, -2, 3)
	for i, err := range errs {
		if !errors.Is(err, errBad) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if len(r.batches) != 2 {
		t.Errorf("batches %v", r.batches)
	}
}

func TestACallerMayLeave(t *testing.T) {
	t.Parallel()
	r := &recorder{started: make(chan struct{}, 1), held: make(chan struct{})}
	g := Group[int, int]{Do: r.do}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { _, err := g.Call(ctx, 1); done <- err }()
	<-r.started
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(r.held)
	if got, err := g.Call(t.Context(), 4); got != 8 || err != nil {
		t.Errorf("afterwards: %d, %v", got, err)
	}
}

func TestAMissingResultIsAnError(t *testing.T) {
	t.Parallel()
	g := Group[int, int]{Timeout: time.Minute, Do: func(context.Context, []int) ([]int, error) { return nil, nil }}
	if _, err := g.Call(t.Context(), 1); err == nil {
		t.Error("no error")
	}
}
