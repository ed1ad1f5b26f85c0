// Package actors are the clients of a platform under fire. Each does one kind of
// thing over and over, as a careful client does: it repeats what had no answer,
// with the same Idempotency-Key, at another edge. What it saw goes to a journal.
package actors

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/bench/chaos/audit"
	"sluice.dev/sluice/bench/chaos/fleet"
	"sluice.dev/sluice/e2e/harness"
)

// World is what actors share.
type World struct {
	Fleet  *fleet.Fleet
	Client *http.Client
	// Slow makes everybody take their time, and gives the platform more of it: for
	// machines that do other things too.
	Slow bool
	// Drill is of a run in which PostgreSQL fails over, and nothing else happens to
	// edges: a service that needs no database is asked as well, and has to answer.
	Drill bool

	key, session, account string
	limited               string // a key that may ask less than it does
	receiver              *Receiver
	probes                []forbidden
	pay                   till

	mu      sync.Mutex
	rand    *rand.Rand
	seen    audit.Seen
	served  map[string][]time.Time // by name of an edge: whole answers to its meter
	chatted []time.Time            // ends of whole completions
	keys    []*madeKey
	meters  map[string]*audit.Meter // by name of the edge
	number  int
}

// New returns a world for a fleet that serves.
func New(f *fleet.Fleet, r *Receiver, seed uint64) (*World, error) {
	c, err := f.Client()
	if err != nil {
		return nil, err
	}
	return &World{Fleet: f, Client: c, receiver: r, rand: rand.New(rand.NewPCG(seed, 2)), key: f.Dev["SLUICE_API_KEY"], session: f.Dev["SLUICE_SESSION_TOKEN"],
		account: f.Dev["SLUICE_ACCOUNT_ID"], served: map[string][]time.Time{}, meters: map[string]*audit.Meter{}}, nil
}

// note changes the journal.
func (w *World) note(change func(*audit.Seen)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.seen)
}

// chance is true with the probability p.
func (w *World) chance(p float64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rand.Float64() < p
}

// between chooses a time.
func (w *World) between(least, most time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return least + time.Duration(w.rand.Int64N(int64(most-least)))
}

// edge chooses one.
func (w *World) edge() fleet.Edge {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Fleet.Edges[w.rand.IntN(len(w.Fleet.Edges))]
}

// name makes one that nothing else has.
func (w *World) name(kind string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.number++
	return fmt.Sprintf("chaos %s %d", kind, w.number)
}

// request is what is asked of an edge.
type request struct {
	method, url, key string
	body             any
	headers          []string // further ones: name, value, and so on
	repeat           string   // Idempotency-Key
	payment          string
}

// answer is what came back; status 0: nothing whole.
type answer struct {
	status int
	code   string
	body   []byte
	header http.Header
}

func (a answer) ok() bool { return a.status >= 200 && a.status < 300 }

// tryAgain says that the answer settles nothing.
func (a answer) tryAgain() bool {
	switch a.status {
	case 0, 408, 409, 425, 429:
		return true
	}
	return a.status >= 500
}

func (a answer) into(v any) error { return json.Unmarshal(a.body, v) }

// ask makes one request and reads the answer to its end.
func (w *World) ask(ctx context.Context, r request) answer {
	headers := slices.Clone(r.headers)
	if r.repeat != "" {
		headers = append(headers, "Idempotency-Key", r.repeat)
	}
	if r.payment != "" {
		headers = append(headers, "X-Payment", r.payment)
	}
	a, err := harness.Ask(ctx, w.Client, r.method, r.url, r.key, r.body, headers...)
	if err != nil {
		return answer{}
	}
	var e struct{ Error struct{ Code string } }
	_ = json.Unmarshal(a.Text, &e) // an answer that is no envelope has no code
	return answer{a.StatusCode, e.Error.Code, a.Text, a.Header}
}

func bearer(key string) string {
	if key == "" {
		return ""
	}
	return "Bearer " + key
}

// tries bounds how often a client repeats a request.
const tries = 12

// insist repeats a request at one edge after another until it is settled or the
// client gives up. unsure says that an earlier try may have taken effect.
func (w *World) insist(ctx context.Context, path string, r request) (a answer, unsure bool) {
	pause := 100 * time.Millisecond
	for range tries {
		r.url = w.edge().Gateway + path
		a = w.ask(ctx, r)
		w.judge(r, a)
		if !a.tryAgain() {
			return a, unsure
		}
		unsure = true
		if !w.sleep(ctx, pause) {
			return a, unsure
		}
		pause = min(2*pause, 3*time.Second)
	}
	return a, unsure
}

// judge notes how a valid request fared.
func (w *World) judge(r request, a answer) {
	edge, path := w.split(r.url)
	w.tried(audit.Try{Edge: edge, What: r.method + " " + path, Status: a.status, Code: a.code})
}

// tried notes a try that has ended now.
func (w *World) tried(t audit.Try) {
	t.At = time.Now()
	w.note(func(s *audit.Seen) { s.Tries = append(s.Tries, t) })
}

// split says which edge a URL leads to, and its path with ids and query left out.
func (w *World) split(url string) (edge, path string) {
	for _, e := range w.Fleet.Edges {
		for _, base := range []string{e.Gateway, e.Runtime} {
			if rest, is := strings.CutPrefix(url, base+"/"); is {
				edge, path = e.Name, rest
			}
		}
	}
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if strings.Contains(p, "_") {
			parts[i] = "{id}"
		}
	}
	return edge, "/" + strings.Join(parts, "/")
}

// sleep waits; false: the run is over.
func (w *World) sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// every runs f again and again until ctx ends, with a pause in between.
func (w *World) every(ctx context.Context, pause time.Duration, f func(context.Context)) {
	if w.Slow {
		pause *= 3
	}
	for w.sleep(ctx, pause) {
		f(context.WithoutCancel(ctx)) // what was begun is brought to an end
	}
}
