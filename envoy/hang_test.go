package envoy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A worker that is late is left alone if it went on by the next look, and hangs if
// it did not. It is told once.
func TestWhichWorkersHang(t *testing.T) {
	t.Parallel()
	type look struct {
		misses, waits string // of worker_0, worker_1 and so on; waits - cannot be told
		found         string
	}
	for name, looks := range map[string][]look{
		"nobody is late":               {{"00", "55", ""}, {"00", "55", ""}},
		"late, and went on":            {{"10", "55", ""}, {"10", "65", ""}, {"10", "65", ""}},
		"late, and hangs":              {{"10", "55", ""}, {"10", "56", "worker_0"}, {"10", "57", ""}},
		"late before the first look":   {{"01", "55", ""}, {"01", "65", "worker_1"}},
		"late again, and hangs":        {{"10", "55", ""}, {"20", "66", ""}, {"20", "66", "worker_0"}},
		"hangs, and comes back":        {{"10", "55", ""}, {"10", "55", "worker_0"}, {"10", "65", ""}, {"20", "65", ""}, {"20", "65", "worker_0"}},
		"all hang":                     {{"11", "55", ""}, {"11", "55", "worker_0 worker_1"}, {"11", "55", ""}},
		"it cannot be told whether so": {{"10", "--", ""}, {"10", "--", "worker_0"}},
	} {
		var w hangDetector
		for i, l := range looks {
			misses := map[string]int{}
			for n, c := range l.misses {
				misses[fmt.Sprintf("worker_%d", n)] = int(c - '0')
			}
			found := w.findHung(misses, func(worker string) (uint64, bool) {
				c := l.waits[worker[len("worker_")]-'0']
				return uint64(c), c != '-'
			})
			if got := strings.Join(found, " "); got != l.found {
				t.Errorf("%s, look %d: %q, want %q", name, i, got, l.found)
			}
		}
	}
}

// However often workers hang, replacements keep to their pace.
func TestPaceOfReplacements(t *testing.T) {
	t.Parallel()
	var p replacementLimit
	now := time.Unix(1_800_000_000, 0)
	var at []int // seconds
	for s := range 200 {
		if p.allow(now.Add(time.Duration(s) * time.Second)) {
			at = append(at, s)
		}
	}
	if got, want := fmt.Sprint(at), "[0 5 15 35 75 135 195]"; got != want {
		t.Errorf("replaced at %s, want %s", got, want)
	}
	now = now.Add(195*time.Second + replaceReset)
	if !p.allow(now) || p.allow(now.Add(replaceFirst-1)) || !p.allow(now.Add(replaceFirst)) {
		t.Error("a hang after a long time is not a first one")
	}
}

// One request hangs one worker. Those of the other worker, idle, under way and all
// the time, are answered every one; so are new clients, of which some meet the
// worker that hangs until another Envoy listens. The one that hung is gone then.
func TestAWorkerThatHangsIsReplaced(t *testing.T) {
	t.Parallel()
	b := newHangBed(t)
	hanging, healthy := b.both(t, 3)
	first := b.edge.proc
	slow := healthy[0].later("/slow", "")
	<-b.asked
	hung := hanging[0].later("/", "please")
	<-b.hangs
	began := time.Now()
	stop := b.hammer(t) // new clients
	for b.edge.Hangs() == 0 {
		if status, err := healthy[1].ask("/", ""); err != nil || status != http.StatusTeapot {
			t.Fatalf("a client of the other worker: %d, %v", status, err)
		}
	}
	noticed := time.Since(began)
	if healthy[1].dials != 1 {
		t.Errorf("a client of the other worker had to connect %d times while one hung", healthy[1].dials)
	}
	b.awaitEpoch(t, 1)
	replaced := time.Since(began)
	for range 20 {
		b.await(t, http.StatusTeapot)
	}
	if status, err := healthy[2].ask("/", ""); err != nil || status != http.StatusTeapot || healthy[2].dials != 1 {
		t.Errorf("a client that was idle meanwhile: %d, %v, %d connections", status, err, healthy[2].dials)
	}
	close(b.answer)
	if a := <-slow; a.err != nil || a.status != http.StatusAccepted {
		t.Errorf("the request that was under way at the other worker: %+v", a)
	}
	<-first.Done()
	if a := <-hung; a.err == nil {
		t.Errorf("the request that hung was answered: %+v", a)
	}
	if failures := stop(); len(failures) > 0 {
		t.Errorf("%d requests failed, first: %s", len(failures), failures[0])
	}
	if b.edge.Hangs() != 1 {
		t.Errorf("%d workers were found to hang, want 1", b.edge.Hangs())
	}
	t.Logf("noticed after %s, replaced after %s, the old one ended after %s", noticed, replaced, time.Since(began))
}

// A client that goes on with it hangs the next Envoy as well: that one is replaced
// too, and after it an upgrade goes as ever. None of those that hung is left in the
// end.
func TestWorkersThatHangAgain(t *testing.T) {
	t.Parallel()
	b := newHangBed(t)
	first := b.edge.proc
	var hung []<-chan answer
	for epoch := 1; epoch <= 2; epoch++ {
		hung = append(hung, b.connect(t).later("/", "please"))
		<-b.hangs
		b.awaitEpoch(t, epoch)
	}
	<-first.Done()
	b.edge.Reload()
	b.awaitEpoch(t, 3)
	b.await(t, http.StatusTeapot)
	b.stop()
	if err := <-b.finished; err != nil {
		t.Error(err)
	}
	b.finished <- nil // for the clean-up
	for _, a := range hung {
		if a := <-a; a.err == nil {
			t.Errorf("a request that hung was answered: %+v", a)
		}
	}
	if got := b.edge.Hangs(); got != 2 {
		t.Errorf("%d workers were found to hang, want 2", got)
	}
}
