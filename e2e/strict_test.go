package e2e

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// passed are the times at which requests of a flood were let through.
type passed struct {
	mu    sync.Mutex
	times []time.Time
}

// flood sends perSecond requests a second with key to a path of the gateways, for some
// seconds, and returns how many passed.
func (p *passed) flood(t testing.TB, key, path string, gateways []string, perSecond, seconds int) (n int) {
	t.Helper()
	var wg sync.WaitGroup
	pace := time.NewTicker(time.Second / time.Duration(perSecond))
	defer pace.Stop()
	for i := range perSecond * seconds {
		<-pace.C
		wg.Go(func() {
			r, err := try(http.MethodGet, gateways[i%len(gateways)]+path, key, nil)
			p.mu.Lock()
			defer p.mu.Unlock()
			switch {
			case err != nil:
				t.Error(err)
			case r.StatusCode == http.StatusOK:
				p.times = append(p.times, time.Now())
				n++
			case r.StatusCode != http.StatusTooManyRequests:
				t.Errorf("%s: status %d: %s", path, r.StatusCode, r.body)
			}
		})
	}
	wg.Wait()
	return n
}

// most is how many passed in the fullest minute.
func (p *passed) most() (most int) {
	slices.SortFunc(p.times, time.Time.Compare)
	first := 0
	for i, at := range p.times {
		for at.Sub(p.times[first]) >= time.Minute {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// While one of three edges is cut off, it serves a share of a limit that is available
// besides what the others have used, and nothing of a strict one that they have used up.
func TestClassesWhenAnEdgeIsCutOff(t *testing.T) {
	t.Parallel()
	const perMinute, perSecond = 240, 20
	env, addrs := edgesOf(t, 2)
	s := own(t, env)
	for class, when := range map[string]string{"loose": "available", "exact": "strict"} {
		wantStatus(t, call(t, http.MethodPut, s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/classes/"+class, s.dev["SLUICE_ADMIN_KEY"],
			map[string]any{"per_minute": perMinute, "when_cut_off": when}), http.StatusCreated)
		wantStatus(t, call(t, http.MethodPut, s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/routes/"+class, s.dev["SLUICE_ADMIN_KEY"],
			map[string]any{"path": "/v1/" + class, "class": class, "auth": []string{"key"}, "respond": map[string]any{"status": 200}}), http.StatusCreated)
	}
	w := newWire(t, s.env["SLUICE_XDS_ADDR"])
	e := s.addEdge(t, "edge-cut", w.addr())
	e.shows(t, "sluice_agent_limits_edges 3\n")
	e.shows(t, "sluice_agent_limits_holders 3\n")
	key := s.dev["SLUICE_API_KEY"]
	connected := []string{"http://" + addrs[0], "http://" + addrs[1]}
	loose, exact := &passed{}, &passed{}
	both := func(gateways []string, seconds int) (ofLoose, ofExact int) {
		var wg sync.WaitGroup
		wg.Go(func() { ofLoose = loose.flood(t, key, "/v1/loose", gateways, perSecond, seconds) })
		wg.Go(func() { ofExact = exact.flood(t, key, "/v1/exact", gateways, perSecond, seconds) })
		wg.Wait()
		return ofLoose, ofExact
	}
	ofLoose, ofExact := both(connected, perMinute/perSecond+2)
	t.Logf("all connected: available %d, strict %d of %d", ofLoose, ofExact, perMinute)
	if ofLoose < perMinute*98/100 || ofExact < perMinute*9/10 {
		t.Errorf("all connected: available %d, strict %d of %d", ofLoose, ofExact, perMinute)
	}
	w.set(true)
	e.shows(t, `sluice_agent_limits{by="share"} 1`)
	ofLoose, ofExact = both([]string{e.base}, 2*perMinute/3/perSecond)
	t.Logf("at the edge that is cut off: available %d, strict %d; in the fullest minute: available %d, strict %d", ofLoose, ofExact, loose.most(), exact.most())
	if ofLoose != perMinute/3 {
		t.Errorf("the edge that is cut off let %d through, want its share of %d", ofLoose, perMinute/3)
	}
	if most := exact.most(); most > perMinute+3*perSecond {
		t.Errorf("a minute holds %d of a strict limit of %d", most, perMinute)
	}
	w.set(false)
	e.shows(t, `sluice_agent_limits{by="shared"} 1`)
}
