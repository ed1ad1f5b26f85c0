package e2e

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Of requests that an account makes at the same time the number that is refused is
// foretold, though not which.
func TestARehearsalForetellsHowManyOfABurst(t *testing.T) {
	t.Parallel()
	s := gatewayAlone(t)
	d := rehearsedDocument(productNamed(t, "one"), productNamed(t, "other"))
	s.publish(t, d)
	who := s.callers(t)
	s.accepts(t, who)
	list := slices.Repeat([]asked{{caller: 2, method: "POST", path: "/things"}, {caller: 2, method: "GET", path: "/things/7"}, {caller: 4, method: "GET", path: "/maybe"}, {caller: 3, method: "GET", path: "/files/a"}}, 60)
	crowd := func(again bool) (refused map[int]int, passed map[string]bool) {
		var all sync.WaitGroup
		var mu sync.Mutex
		refused, passed = map[int]int{}, map[string]bool{}
		next := make(chan asked)
		pace := time.NewTicker(time.Second / 150)
		defer pace.Stop()
		for range 12 {
			all.Go(func() {
				for a := range next {
					<-pace.C
					b := s.ask(t, a, who[a.caller], again)
					mu.Lock()
					if passed[b.id] = b.is == "200"; !passed[b.id] {
						refused[a.caller]++
					}
					mu.Unlock()
				}
			})
		}
		for _, a := range list {
			next <- a
		}
		close(next)
		all.Wait()
		return refused, passed
	}
	was, passed := crowd(false)
	s.isRecorded(t, d)
	edits["a smaller class"](d)
	edits["a smaller default"](d)
	edits["fewer without a key"](d)
	routeOf(d, "files")["scope"] = "things:read"
	got := s.rehearse(t, d)
	foretold := maps.Clone(was)
	count := func(list []string, by int) {
		for _, id := range list {
			if _, ours := passed[id]; ours {
				foretold[by]++
			}
		}
	}
	for _, f := range got.Refused.Findings {
		var ids []string
		for _, e := range f.Examples {
			ids = append(ids, e.ID)
		}
		count(ids, map[string]int{"/things": 2, "/things/{id}": 2, "/maybe": 4, "/files/*": 3}[f.Path])
	}
	for _, f := range got.Allowed.Findings {
		foretold[map[string]int{"/things": 2, "/things/{id}": 2, "/maybe": 4, "/files/*": 3}[f.Path]] -= int(f.Requests)
	}
	s.publish(t, d)
	is, _ := crowd(true)
	t.Logf("refused before %v, foretold %v, then %v", was, foretold, is)
	if !maps.Equal(foretold, is) {
		t.Errorf("refused %v, foretold %v", is, foretold)
	}
	// Without a record there is nothing to foretell, and the answer says so.
	d["request_log"] = "off"
	s.publish(t, d)
	if got := s.rehearse(t, d); len(got.Notes) == 0 || !strings.Contains(got.Notes[0], "request_log is off") {
		t.Errorf("%v", got.Notes)
	}
}
