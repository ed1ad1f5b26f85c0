package concurrency

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

const most = 32

// got asks n times in the fast lane without waiting.
func got(t *testing.T, p *Limiter, id string, lane Lane) Decision {
	t.Helper()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	return p.Ask(ended, id, lane)
}

func fill(t *testing.T, p *Limiter, id string) (permits []*Permit) {
	t.Helper()
	for {
		d := got(t, p, id, Fast)
		if d.Verdict != Go {
			return permits
		}
		permits = append(permits, d.Permit)
	}
}

func TestQuickAnswersEarnMoreRequestsAtATime(t *testing.T) {
	t.Parallel()
	p := New(nil)
	first := fill(t, p, "a")
	if len(first) != startLimit {
		t.Fatalf("%d at first, want %d", len(first), startLimit)
	}
	for _, permit := range first {
		permit.Done(time.Millisecond, most)
	}
	if n := len(fill(t, p, "a")); n != 2*startLimit {
		t.Fatalf("%d after %d quick answers, want %d", n, startLimit, 2*startLimit)
	}
}

func TestNeverMoreThanTheEndpointMayGet(t *testing.T) {
	t.Parallel()
	p := New(nil)
	for range 100 {
		got(t, p, "a", Fast).Permit.Done(time.Millisecond, 6)
	}
	if n := len(fill(t, p, "a")); n != 6 {
		t.Fatalf("%d, want 6", n)
	}
}

func TestOneEndpointDoesNotTouchAnother(t *testing.T) {
	t.Parallel()
	p := New(nil)
	fill(t, p, "a")
	if d := got(t, p, "b", Fast); d.Verdict != Go {
		t.Fatalf("%+v", d)
	}
}

func TestSlowAnswerMovesTheEndpointAndQuickOnesBringItBack(t *testing.T) {
	t.Parallel()
	p := New(nil)
	got(t, p, "a", Fast).Permit.Done(5*time.Second, most)
	if d := got(t, p, "a", Fast); d.Verdict != Divert {
		t.Fatalf("after a slow answer: %+v", d)
	}
	for range recoveries {
		got(t, p, "a", Slow).Permit.Done(time.Millisecond, most)
	}
	if d := got(t, p, "a", Fast); d.Verdict != Go {
		t.Fatalf("after %d quick ones: %+v", recoveries, d)
	}
}

func TestSlowLaneSpreadsWhatMustWait(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	p := New(func() time.Time { return now })
	got(t, p, "a", Slow).Permit.Done(5*time.Second, most)
	for range slowLimit {
		if d := got(t, p, "a", Slow); d.Verdict != Go {
			t.Fatalf("%+v", d)
		}
	}
	for i := 1; i <= 3; i++ {
		want := time.Duration(i) * 5 * time.Second / slowLimit
		if d := got(t, p, "a", Slow); d.Verdict != Later || d.Wait != want {
			t.Fatalf("job %d: %+v, want it %v later", i, d, want)
		}
	}
	for range 100 {
		got(t, p, "a", Slow)
	}
	if d := got(t, p, "a", Slow); d.Wait > maxLater {
		t.Fatalf("waits %v", d.Wait)
	}
}

func TestRequestThatHangsIsNoticedBeforeItEnds(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	p := New(func() time.Time { return now })
	got(t, p, "a", Fast)
	now = now.Add(slowAnswer + time.Millisecond)
	if d := got(t, p, "a", Fast); d.Verdict != Divert {
		t.Fatalf("%+v", d)
	}
}

func TestJobWaitsForAPlaceAndGetsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New(nil)
		permits := fill(t, p, "a")
		answer := make(chan Decision)
		go func() { answer <- p.Ask(t.Context(), "a", Fast) }()
		synctest.Wait()
		permits[0].Done(time.Millisecond, most)
		if d := <-answer; d.Verdict != Go {
			t.Fatalf("%+v", d)
		}
	})
}

func TestJobThatWaitsTooLongIsDiverted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New(nil)
		fill(t, p, "a")
		start := time.Now()
		if d := p.Ask(t.Context(), "a", Fast); d.Verdict != Divert || time.Since(start) != maxWait {
			t.Fatalf("%+v after %v", d, time.Since(start))
		}
	})
}

func TestIdleEndpointsAreForgotten(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	p := New(func() time.Time { return now })
	got(t, p, "a", Fast).Permit.Done(5*time.Second, most)
	now = now.Add(2 * forgetAfter)
	got(t, p, "b", Fast)
	if _, kept := p.endpoints["a"]; kept {
		t.Fatal("an idle endpoint is kept for ever")
	}
}

// A burst for one quick endpoint overflows into the slow lane; what must wait
// there comes back at the endpoint's own speed, not at that of slow ones.
func TestOverflowOfAQuickEndpointComesBackSoon(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	p := New(func() time.Time { return now })
	for range 2 * most {
		got(t, p, "a", Fast).Permit.Done(64*time.Millisecond, most)
	}
	fill(t, p, "a")
	for i := 1; i <= 100; i++ {
		want := time.Duration(i) * 64 * time.Millisecond / most
		if d := got(t, p, "a", Slow); d.Verdict != Later || d.Wait != want {
			t.Fatalf("job %d: %+v, want it %v later", i, d, want)
		}
	}
}
