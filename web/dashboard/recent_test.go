package dashboard

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A look at the database that hangs makes only those wait who look at the same.
func TestNobodyWaitsForTheReadingOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, now := newRecent(), time.Now()
		hold, reads := make(chan struct{}), 0
		slow := func(ctx context.Context) (any, error) {
			reads++
			select {
			case <-hold:
				return "slow", nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		first, leave := context.WithCancel(t.Context())
		answers := make(chan any, 3)
		ask := func(ctx context.Context) {
			if data, err := c.get(ctx, "a", now, time.Second, slow); err != nil {
				answers <- err
			} else {
				answers <- data
			}
		}
		go ask(first)
		synctest.Wait()
		go ask(t.Context())
		go ask(t.Context())
		synctest.Wait()
		data, err := c.get(t.Context(), "b", now, time.Second, func(context.Context) (any, error) { return "other", nil })
		if data != "other" || err != nil {
			t.Errorf("%v %v", data, err)
		}
		leave()
		if err, _ := (<-answers).(error); !errors.Is(err, context.Canceled) {
			t.Errorf("who left: %v", err)
		}
		close(hold)
		for range 2 {
			if got := <-answers; got != "slow" {
				t.Errorf("who stayed: %v", got)
			}
		}
		if data, err := c.get(t.Context(), "a", now, time.Second, slow); data != "slow" || err != nil || reads != 1 {
			t.Errorf("%v %v, read %d times", data, err, reads)
		}
		if _, err := c.get(t.Context(), "a", now.Add(time.Second), time.Second, slow); err != nil || reads != 2 {
			t.Errorf("a second later: %v, read %d times", err, reads)
		}
	})
}

func TestAReadingEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, err := newRecent().get(t.Context(), "a", time.Now(), time.Second, func(ctx context.Context) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
