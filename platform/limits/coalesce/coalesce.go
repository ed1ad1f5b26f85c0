// Package coalesce carries out calls in batches: those that arrive while earlier
// ones are under way are carried out together. A call that comes alone
// is carried out at once, so that a quiet system gains no delay and a busy one
// pays the cost of a transaction once for many. An account of which many calls wait has
// batches of its own, so that nobody else waits for what they cost.
package coalesce

import (
	"cmp"
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"
)

// Group carries out calls with arguments T and results R. The zero value is not
// usable: set Do.
type Group[T, R any] struct {
	// Do carries out calls; its results are in the order of its arguments. When
	// it fails for several, each is tried alone, so that one bad call spoils no
	// other. The context is the Group's own: no caller's end cuts others short.
	Do func(ctx context.Context, args []T) ([]R, error)
	// Separate says for which errors of Do each call is tried alone; nil: for all.
	Separate func(error) bool
	// Max is the most calls in one Do; 0: 64.
	Max int
	// Parallel is how many Do run at once; 0: 4. With Account there is one more, which no
	// account has beside all others, nor all those of which many calls wait together.
	Parallel int
	// Account says whose a call is; nil: nobody has to wait for others. Calls of accounts
	// with few go together, up to a sixteenth of Max of each; accounts with more take turns.
	Account func(T) string
	// Timeout bounds one Do; 0: 5 seconds.
	Timeout time.Duration

	mu      sync.Mutex
	lines   map[string]*line[T, R] // of accounts of which calls wait
	turns   list.List              // of *line: the same
	queued  int                    // calls in all lines
	running int                    // Do under way, or about to be
	heavy   int                    // those of an account with many
	under   map[string]int         // those with calls of an account
}

// line is the calls of an account that wait, the first first.
type line[T, R any] struct {
	account string
	calls   []call[T, R]
	turn    *list.Element
}

type call[T, R any] struct {
	arg  T
	done chan outcome[R] // holds one, so that nobody waits for a caller that left
}

type outcome[R any] struct {
	result R
	err    error
}

// Call waits for its turn and returns the result for arg. When ctx ends first
// it returns early; whether the call is carried out is then unknown.
func (g *Group[T, R]) Call(ctx context.Context, arg T) (R, error) {
	c := call[T, R]{arg, make(chan outcome[R], 1)}
	g.mu.Lock()
	g.put(c)
	if g.running < g.places() {
		g.running++
		go g.drain()
	}
	g.mu.Unlock()
	select {
	case o := <-c.done:
		return o.result, o.err
	case <-ctx.Done():
		var none R
		return none, ctx.Err()
	}
}

// put adds a call to its line. g.mu is held.
func (g *Group[T, R]) put(c call[T, R]) {
	account := ""
	if g.Account != nil {
		account = g.Account(c.arg)
	}
	l := g.lines[account]
	if l == nil {
		if g.lines == nil {
			g.lines = map[string]*line[T, R]{}
		}
		l = &line[T, R]{account: account}
		g.lines[account] = l
		l.turn = g.turns.PushBack(l)
	}
	l.calls = append(l.calls, c)
	g.queued++
}

// places is how many Do run at once.
func (g *Group[T, R]) places() int {
	if g.Account != nil {
		return cmp.Or(g.Parallel, 4) + 1
	}
	return cmp.Or(g.Parallel, 4)
}

// drain carries out batches until there is none for it.
func (g *Group[T, R]) drain() {
	for {
		batch, of, heavy := g.take()
		if batch == nil {
			return
		}
		if !g.try(batch) {
			for i := range batch {
				g.try(batch[i : i+1])
			}
		}
		g.end(of, heavy)
	}
}

// end notes that a batch of these accounts is over.
func (g *Group[T, R]) end(of []string, heavy bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if heavy {
		g.heavy--
	}
	for _, account := range of {
		if g.under[account]--; g.under[account] == 0 {
			delete(g.under, account)
		}
	}
}

// take removes the next batch: that of an account with many calls whose turn it is, or all
// that wait of accounts with few. Without one it gives up its place: what waits then is of
// accounts that have all the places they may, and goes on as those end. of are its accounts.
// It costs as much as there are accounts that have to wait, and calls in the batch.
func (g *Group[T, R]) take() (batch []call[T, R], of []string, heavy bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	most, each := cmp.Or(g.Max, 64), cmp.Or(g.Parallel, 4)
	for e := g.turns.Front(); e != nil && len(batch) < most && !heavy; {
		l := e.Value.(*line[T, R])
		e = e.Next()
		if g.under[l.account] >= each {
			continue
		}
		if g.Account != nil && len(l.calls) > max(1, most/16) {
			if len(batch) > 0 || g.heavy >= each {
				continue
			}
			heavy = true
			g.heavy++
		}
		batch, of = append(batch, g.cut(l, most-len(batch))...), append(of, l.account)
		if g.under == nil {
			g.under = map[string]int{}
		}
		g.under[l.account]++
	}
	if batch == nil {
		g.running--
	}
	return batch, of, heavy
}

// cut takes up to n calls out of a line, whose turn is then the last. g.mu is held.
func (g *Group[T, R]) cut(l *line[T, R], n int) []call[T, R] {
	n = min(n, len(l.calls))
	calls := l.calls[:n:n]
	l.calls, g.queued = l.calls[n:], g.queued-n
	if len(l.calls) > 0 {
		g.turns.MoveToBack(l.turn)
		return calls
	}
	g.turns.Remove(l.turn)
	delete(g.lines, l.account)
	return calls
}

// try carries out a batch and tells its callers. False means that nobody was
// told, because each call is to be tried alone.
func (g *Group[T, R]) try(batch []call[T, R]) bool {
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(g.Timeout, 5*time.Second))
	defer cancel()
	args := make([]T, len(batch))
	for i, c := range batch {
		args[i] = c.arg
	}
	results, err := g.Do(ctx, args)
	if err == nil && len(results) != len(args) {
		err = fmt.Errorf("%d results for %d calls", len(results), len(args))
	}
	if err != nil && len(batch) > 1 && (g.Separate == nil || g.Separate(err)) {
		return false
	}
	for i, c := range batch {
		o := outcome[R]{err: err}
		if err == nil {
			o.result = results[i]
		}
		c.done <- o
	}
	return true
}
