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
	g.waitUntil(func() bool { return g.queued == n })
}

// waitForEnd waits until no place is taken any more: callers hear before their batch's place
// is given up.
func (g *Group[T, R]) waitForEnd() {
	g.waitUntil(func() bool { return g.running == 0 })
}

// waitUntil waits for what is true of g, which is locked meanwhile.
func (g *Group[T, R]) waitUntil(is func() bool) {
	for {
		g.mu.Lock()
		done := is()
		g.mu.Unlock()
		if done {
			return
		}
		runtime.Gosched()
	}
}

// gathered makes the calls while earlier ones have all places, and returns their
// results and errors.
func gathered(t *testing.T, r *recorder, g *Group[int, int], args ...int) ([]int, []error) {
	t.Helper()
	r.started, r.held = make(chan struct{}, 100), make(chan struct{})
	g.Do, g.Parallel = r.do, 1
	results, errs := make([]int, len(args)), make([]error, len(args))
	var calls sync.WaitGroup
	for i := range g.places() {
		calls.Go(func() { _, _ = g.Call(t.Context(), i*10_000) }) // of different accounts
		<-r.started
	}
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

// accountOf is whose a call is: b of 1000 to 1999.
func accountOf(n int) string { return string(rune('a' + n/1000)) }

// An account of which many calls wait has batches of its own; those of others go together, first
// come first served, and never wait for more than what is under way.
func TestManyCallsOfAnAccountGoAlone(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	g := &Group[int, int]{Max: 32, Account: accountOf}
	var args []int
	for n := range 70 {
		args = append(args, 1000+n) // of b, who has many
	}
	args = append(args, 2000, 3000, 2001) // of c and d, who have few
	results, errs := gathered(t, r, g, args...)
	for i, n := range args {
		if results[i] != 2*n || errs[i] != nil {
			t.Errorf("call %d: %d, %v", n, results[i], errs[i])
		}
	}
	seen := map[string]int{}
	for i, batch := range r.batches[g.places():] {
		of := map[string]bool{}
		for _, n := range batch {
			of[accountOf(n)] = true
			seen[accountOf(n)]++
		}
		if of["b"] && len(of) > 1 {
			t.Errorf("batch %d has others' calls beside those of b: %v", i, batch)
		}
	}
	if seen["b"] != 70 || seen["c"] != 2 || seen["d"] != 1 {
		t.Errorf("carried out: %v", seen)
	}
}

// However many calls of an account are under way and wait, one place is left for others.
func TestAPlaceIsLeftForOthers(t *testing.T) {
	t.Parallel()
	r := &recorder{started: make(chan struct{}, 100), held: make(chan struct{})}
	g := &Group[int, int]{Do: r.do, Max: 32, Parallel: 2, Account: accountOf}
	var calls sync.WaitGroup
	ask := func(n int) {
		calls.Go(func() {
			if got, err := g.Call(t.Context(), n); got != 2*n || err != nil {
				t.Errorf("%d: %d, %v", n, got, err)
			}
		})
	}
	for n := range 2 { // few as they are, they get a place each, and no third
		ask(1000 + n)
		<-r.started
	}
	ask(1002)
	g.waitFor(1)
	ask(2000)
	<-r.started // though none of the others has ended
	for n := range 100 {
		ask(1100 + n)
	}
	g.waitFor(101)
	for range 3 { // all end, and then two of many are under way
		r.held <- struct{}{}
	}
	for range 2 {
		<-r.started
	}
	ask(3000)
	<-r.started
	r.mu.Lock()
	if n := len(r.batches); !slices.Equal(r.batches[2], []int{2000}) || !slices.Equal(r.batches[n-1], []int{3000}) || n != 6 {
		t.Errorf("%v", r.batches)
	}
	r.mu.Unlock()
	close(r.held)
	calls.Wait()
	g.waitForEnd()
	if g.queued+g.running+g.heavy+len(g.under)+len(g.lines)+g.turns.Len() != 0 {
		t.Errorf("left: %d %d %d %d %d", g.queued, g.running, g.heavy, len(g.lines), g.turns.Len())
	}
}
