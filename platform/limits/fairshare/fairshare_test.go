package fairshare

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestShare(t *testing.T) {
	t.Parallel()
	p := New(Config{Places: 4, Share: 2})
	first, ok := p.TryEnter("greedy")
	_, second := p.TryEnter("greedy")
	if _, third := p.TryEnter("greedy"); !ok || !second || third {
		t.Fatal("an account gets its share and no more")
	}
	if _, ok := p.TryEnter("other"); !ok {
		t.Fatal("another gets a place at once")
	}
	first()
	first() // twice
	if _, ok := p.TryEnter("greedy"); !ok {
		t.Error("a place that is given back is there again")
	}
	if _, ok := p.TryEnter("greedy"); ok {
		t.Error("giving back twice makes no second place")
	}
}

// Accounts that wait are served in turn, however many wait for one of them.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New(Config{Places: 1, Share: 1, Waiting: 10})
		leave, err := p.Enter(t.Context(), "greedy")
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []string
		var all sync.WaitGroup
		for _, name := range []string{"greedy", "greedy", "greedy", "a", "b"} {
			all.Go(func() {
				leave, err := p.Enter(t.Context(), name)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				leave()
			})
			synctest.Wait()
		}
		leave()
		all.Wait()
		if order[0] != "greedy" || order[1] != "a" || order[2] != "b" {
			t.Errorf("served in the order %v", order)
		}
		if len(p.accounts) != 0 || p.turns.Len() != 0 || p.free != 1 {
			t.Errorf("left: %d accounts, %d turns, %d free", len(p.accounts), p.turns.Len(), p.free)
		}
	})
}

func TestWaitingIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New(Config{Places: 1, Waiting: 1})
		leave, _ := p.TryEnter("a")
		ctx, cancel := context.WithCancel(t.Context())
		var waited sync.WaitGroup
		waited.Go(func() {
			if _, err := p.Enter(ctx, "a"); !errors.Is(err, context.Canceled) {
				t.Errorf("whoever gave up got %v", err)
			}
		})
		synctest.Wait()
		if _, err := p.Enter(t.Context(), "a"); !errors.Is(err, ErrBusy) {
			t.Errorf("one too many got %v", err)
		}
		cancel()
		waited.Wait()
		leave()
		if _, err := p.Enter(ctx, "a"); !errors.Is(err, context.Canceled) {
			t.Errorf("whoever had left got a place: %v", err)
		}
		if len(p.accounts) != 0 || p.turns.Len() != 0 {
			t.Errorf("left: %d accounts, %d turns", len(p.accounts), p.turns.Len())
		}
	})
}

// However many come and give up, no more than Places are held, none of an account
// more than its share, and nothing is left in the end.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	p := New(Config{Places: 5, Share: 2, Waiting: 1000})
	var held, most atomic.Int32
	var of [3]atomic.Int32
	var all sync.WaitGroup
	for i := range 300 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%7 == 0 {
				cancel()
			}
			leave, err := p.Enter(ctx, string(rune('a'+i%3)))
			if err != nil {
				return
			}
			if now := held.Add(1); now > most.Load() {
				most.Store(now)
			}
			if of[i%3].Add(1) > 2 {
				t.Error("an account holds more than its share")
			}
			of[i%3].Add(-1)
			held.Add(-1)
			leave()
		})
	}
	all.Wait()
	if most.Load() > 5 {
		t.Errorf("%d held at once", most.Load())
	}
	if p.free != 5 || len(p.accounts) != 0 || p.turns.Len() != 0 {
		t.Errorf("left: %d free, %d accounts, %d turns", p.free, len(p.accounts), p.turns.Len())
	}
}
