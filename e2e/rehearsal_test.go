package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// foretold is what a rehearsal answers.
type foretold struct {
	Record struct {
		Edges                              int
		Recorded, Requests, Agreeing, Lost int64
		Complete                           bool
	}
	Refused, Allowed, Moved, Otherwise, Undetermined struct {
		Requests int64
		Accounts int
		More     int
		Findings []struct {
			Requests                                        int64
			Method, Path, Route, Was, Product, Code, Reason string
			Accounts                                        []struct {
				Account     string `json:"account_id"`
				Requests    int64
				Credentials []struct{ ID string }
			}
			Examples []struct{ ID string }
		}
	}
	Limits []struct {
		Account   string `json:"account_id"`
		Limit     string
		PerMinute int `json:"per_minute"`
		Refused   int64
	}
	Notes []string
}

// rehearse asks what a document would do to the requests of the last hour.
func (s *stack) rehearse(t testing.TB, document map[string]any) foretold {
	t.Helper()
	r := call(t, http.MethodPost, s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/config/rehearsal?examples=1000", s.dev["SLUICE_ADMIN_KEY"], document)
	wantStatus(t, r, http.StatusOK)
	return into[foretold](t, r)
}

// isRecorded waits until what was asked so far is recorded: a request that comes behind
// it is.
func (s *stack) isRecorded(t testing.TB, d map[string]any) {
	t.Helper()
	mapped := maps.Clone(d)
	mapped["routes"] = slices.Clone(d["routes"].([]any))
	addRoute(mapped, "sentinel", "/sentinel", "one", "")["auth"] = []string{"none"}
	last := call(t, http.MethodGet, s.url("/sentinel"), "", nil, "X-Forwarded-For", "203.0.113.9").Header.Get("X-Request-Id")
	eventually(t, "every request is recorded", func() error {
		got := s.rehearse(t, mapped)
		for _, f := range got.Allowed.Findings {
			for _, e := range f.Examples {
				if e.ID == last {
					return nil
				}
			}
		}
		return fmt.Errorf("%+v", got)
	})
}

// statuses of codes that requests of these tests are refused with.
var statuses = map[string]int{"AUTH_002": 403, "ROUTE_NOT_MAPPED": 403, "not_found": 404, "rate_limit_exceeded": 429, "invalid_api_key": 401, "authentication_required": 401,
	"request_too_large": 413, "invalid_token": 401}

// What a rehearsal foretells of a document is what happens once it is published, of each
// request of a load.
func TestARehearsalForetellsEveryRequest(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{1, 2, 3, 4} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			s := gatewayAlone(t)
			rng := rand.New(rand.NewPCG(seed, 21))
			d := rehearsedDocument(productNamed(t, "one"), productNamed(t, "other"))
			s.publish(t, d)
			who := s.callers(t)
			s.accepts(t, who)
			list := mixed(rng, len(who), 400)
			began := time.Now()
			was := s.send(t, list, who, false)
			changed := s.changed(t, d, rng)
			s.isRecorded(t, d)
			got := s.rehearse(t, changed)
			if !got.Record.Complete || got.Record.Edges != 1 || got.Record.Lost != 0 || got.Record.Recorded < int64(len(list)) {
				t.Errorf("%+v", got.Record)
			}
			status := 0
			if got.Refused.Requests > 0 {
				status = 2
			}
			if out := s.exits(t, status, "apply", "--rehearse", "-f", s.file(t, changed)); !strings.Contains(out, "nothing was published") || !strings.Contains(out, "tried on all of ") ||
				strings.Contains(out, "would now be refused") != (status == 2) {
				t.Error(out)
			}
			s.publish(t, changed)
			is := s.send(t, list, who, true)
			s.compare(t, got, list, was, is)
			t.Logf("%d requests in %v twice, %d to be refused, %d no more, %d elsewhere, %d otherwise, %d undetermined; the document in force agrees with %d of %d", len(list), time.Since(began),
				got.Refused.Requests, got.Allowed.Requests, got.Moved.Requests, got.Otherwise.Requests, got.Undetermined.Requests, got.Record.Agreeing, got.Record.Recorded)
		})
	}
}

// changed is d with half of the edits, by a seed.
func (s *stack) changed(t *testing.T, d map[string]any, rng *rand.Rand) map[string]any {
	t.Helper()
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(edits)) {
		if rng.IntN(2) == 0 {
			t.Log(name)
			edits[name](out)
		}
	}
	return out
}

// publish applies a document as people do, and waits until the edge has it.
func (s *stack) publish(t *testing.T, d map[string]any) {
	t.Helper()
	s.exits(t, 0, "apply", "-f", s.file(t, d), "--wait", "--timeout", "2m")
}

func (s *stack) file(t *testing.T, d map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(name, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// accepts waits until the edge knows all keys: a request of each to a route that is not
// there for its rate, so that no window is touched.
func (s *stack) accepts(t *testing.T, who []caller) {
	t.Helper()
	for _, c := range who {
		for _, key := range []string{c.key, c.twin} {
			if !strings.HasPrefix(key, "slk_") || key == "slk_none" {
				continue
			}
			eventually(t, "a key is known", func() error {
				r, err := try(http.MethodGet, s.url("/hosted"), key, nil, "X-Forwarded-For", "203.0.113.9")
				if err == nil && r.StatusCode == http.StatusUnauthorized {
					err = fmt.Errorf("status %d", r.StatusCode)
				}
				return err
			})
		}
	}
}

// compare holds what was foretold to what happened.
func (s *stack) compare(t *testing.T, got foretold, list []asked, was, is []became) {
	t.Helper()
	code, undetermined, moved := map[string]string{}, map[string]string{}, map[string]string{}
	for _, f := range got.Refused.Findings {
		for _, e := range f.Examples {
			code[e.ID] = f.Code
		}
	}
	for _, f := range got.Otherwise.Findings {
		for _, e := range f.Examples {
			code[e.ID] = f.Code
		}
	}
	for _, f := range got.Allowed.Findings {
		for _, e := range f.Examples {
			code[e.ID] = "passes"
			moved[e.ID] = f.Product
		}
	}
	for _, f := range got.Moved.Findings {
		for _, e := range f.Examples {
			moved[e.ID] = f.Product
		}
	}
	for _, f := range got.Undetermined.Findings {
		for _, e := range f.Examples {
			undetermined[e.ID] = f.Reason
		}
	}
	wrong, open := 0, 0
	for i, a := range list {
		if undetermined[was[i].id] != "" {
			open++
			continue
		}
		want, took := was[i].is, was[i].took
		if c := code[was[i].id]; c == "passes" {
			want = "200"
		} else if c != "" {
			want, took = fmt.Sprint(statuses[c], " ", c), ""
			if a.method == "HEAD" {
				want = fmt.Sprint(statuses[c])
			}
		}
		if p := moved[was[i].id]; p != "" && a.method != "HEAD" {
			took = p
		}
		if is[i].is != want || is[i].took != took {
			wrong++
			t.Errorf("%d, %+v: was %q of %q, foretold %q of %q, and was %q of %q", i, a, was[i].is, was[i].took, want, took, is[i].is, is[i].took)
		}
	}
	t.Logf("%d of %d requests were as foretold, of %d nothing was", len(list)-wrong-open, len(list)-open, open)
	if open > len(list)/4 {
		t.Errorf("of %d requests nothing was foretold", open)
	}
}
