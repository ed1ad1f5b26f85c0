package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/gateway/edgestatus"
)

// member is a live, connected edge that holds a version of 5.
func member(id string, held int64) edgestatus.Edge {
	return edgestatus.Edge{ID: id, Live: true, Connected: true, Current: held == 5, Wanted: 5, Held: held, Seen: edgestatus.Seen{Published: held}}
}

func TestEdgesWithoutAVersion(t *testing.T) {
	t.Parallel()
	refuses := member("refuses", 4)
	refuses.Refusals, refuses.Published = []string{"routes: no"}, 5
	old := refuses // it refused an earlier version, and may take this one
	old.ID, old.Published = "old", 4
	moving := member("moving", 4)
	moving.Connected = false
	gone := moving
	gone.ID, gone.Live = "gone", false
	for name, c := range map[string]struct {
		edges      []edgestatus.Edge
		lacking    []string
		allRefused bool
	}{
		"none":            {nil, nil, true},
		"all hold it":     {[]edgestatus.Edge{member("a", 5), member("b", 6), gone}, nil, true},
		"one is late":     {[]edgestatus.Edge{member("a", 5), member("b", 4)}, []string{"b holds version 4 and has not answered"}, false},
		"one moves":       {[]edgestatus.Edge{moving}, []string{"moving holds version 4 and is connected to no replica"}, false},
		"one refuses":     {[]edgestatus.Edge{member("a", 5), refuses}, []string{"refuses holds version 4 and refuses routes: no"}, true},
		"one refused one": {[]edgestatus.Edge{old}, []string{"old holds version 4 and has not answered"}, false},
		"late or refuses": {[]edgestatus.Edge{refuses, member("b", 0)}, []string{"refuses holds version 4 and refuses routes: no", "b holds version 0 and has not answered"}, false},
	} {
		lines, allRefused := edgesWithout(edgestatus.View{Version: 5, Data: c.edges}, 5)
		if !slices.Equal(lines, c.lacking) || allRefused != c.allRefused {
			t.Errorf("%s: %q %v", name, lines, allRefused)
		}
	}
}

func viewOf(t *testing.T, edges ...edgestatus.Edge) string {
	t.Helper()
	b, err := json.Marshal(edgestatus.View{Version: 5, Data: edges})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// patient ends the wait when the answer to the first question is in and a second
// one is asked.
type patient struct {
	end   func()
	asked atomic.Int32
}

// RoundTrip implements http.RoundTripper.
func (p *patient) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.asked.Add(1) > 1 {
		p.end()
	}
	return http.DefaultTransport.RoundTrip(r)
}

func TestWaitForEdges(t *testing.T) {
	t.Parallel()
	refuses := member("b", 4)
	refuses.Refusals, refuses.Published = []string{"routes: no"}, 5
	for name, c := range map[string]struct {
		answer string
		status int
		says   string
		fails  string
	}{
		"held":        {viewOf(t, member("a", 5)), 200, "every live edge holds version 5\n", ""},
		"refused":     {viewOf(t, member("a", 5), refuses), 200, "version 5 is not everywhere:\nb holds version 4 and refuses routes: no\n", "exit status 3"},
		"late":        {viewOf(t, member("a", 4)), 200, "version 5 is not everywhere:\na holds version 4 and has not answered\n", "exit status 3"},
		"nobody says": {`{"error":{"code":"unavailable","message":"Later."}}`, 503, "", "whether edges hold it is not known: Later (unavailable)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := newAdminAPI(t, c.status, c.answer)
			var out bytes.Buffer
			ctx, end := context.WithCancel(t.Context())
			defer end()
			err := waitForEdges(ctx, client{base: api.URL, key: adminKey, http: &http.Client{Transport: &patient{end: end}}}, 5, time.Minute, &out)
			if out.String() != c.says || (err == nil) != (c.fails == "") || (err != nil && !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("%q, %v", out.String(), err)
			}
			if _, status := errors.AsType[exitStatus](err); status != strings.HasPrefix(c.fails, "exit") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestEdgesAreShown(t *testing.T) {
	t.Parallel()
	late, refuses, gone, cached := member("late", 4), member("refuses", 4), member("gone", 5), member("cached", 5)
	refuses.Refusals = []string{"routes: no such cluster"}
	gone.Live = false
	cached.Report, cached.Feed = &edgestatus.Report{State: "cached", Build: "1.2", Uptime: 61, Limits: "share", LimitsEdges: 3, LimitsAge: 2.5}, &edgestatus.Feed{Behind: 7}
	late.Report, late.Feed = &edgestatus.Report{State: "live", Limits: "shared", LimitsEdges: 6}, &edgestatus.Feed{}
	api := newAdminAPI(t, http.StatusOK, viewOf(t, member("fine", 5), late, refuses, gone, cached))
	c := edgesCommand(api.environment())
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetArgs(nil)
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"fine     current", "late     behind", "of all 6", "refuses  refuses", "gone     gone", "cached   cached", "1m1s", "share of 1/3 for 2.5s", "refuses refuses routes: no such cluster"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}

func TestHowEdgesLimit(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]edgestatus.Report{
		"of all 3":             {Limits: "shared", LimitsEdges: 3},
		"share of 1/3 for 12s": {Limits: "share", LimitsEdges: 3, LimitsAge: 12.2},
		"share of 1/3":         {Limits: "share", LimitsEdges: 3, LimitsAge: -1},
		"alone":                {Limits: "alone", LimitsEdges: 1},
		"-":                    {},
	} {
		if got := limitsOf(&r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
