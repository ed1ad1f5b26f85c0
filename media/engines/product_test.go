package engines

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/engines/remote"
	"sluice.dev/sluice/platform/apierror"
)

// worker is an engine that does what it is told.
type worker struct {
	name string
	err  error // of Check
	api  *remote.API
}

func (w worker) Check(ctx context.Context) (string, error) {
	if w.api != nil {
		return w.api.Check(ctx)
	}
	return w.name, w.err
}

// product has a built-in engine if asked to, and one at an address.
func product(s Setting, builtin bool) *Product[worker] {
	return &Product[worker]{Name: Voice, What: "speech synthesis",
		Settings: func(context.Context) Settings { return Settings{Voice: s} },
		Lookup:   func(name string) (string, bool) { return "secret of " + name, true },
		Builtin:  func() (worker, bool) { return worker{name: "own"}, builtin },
		Remote:   func(a *remote.API) worker { return worker{name: "theirs", api: a} }}
}

// at is an address that answers so.
func at(t *testing.T, status int) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Key", r.Header.Get("Authorization"))
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestWhichEngineIsTaken(t *testing.T) {
	t.Parallel()
	up, down, refusing := at(t, 200).URL, at(t, 503).URL, at(t, 401).URL
	for name, c := range map[string]struct {
		setting Setting
		builtin bool
		want    string // who does the work; "": nobody
		state   State
	}{
		"nothing":                       {Setting{}, false, "", State{"", Unknown, ""}},
		"built in":                      {Setting{}, true, "own", State{Builtin, OK, "own"}},
		"off":                           {Setting{Use: Off, URL: up}, true, "", State{Off, Unknown, ""}},
		"auto prefers the address":      {Setting{URL: up, Model: "m"}, true, "theirs", State{URL, OK, "m"}},
		"auto and an address down":      {Setting{URL: down, Model: "m"}, true, "own", State{Builtin, OK, "own"}},
		"auto and a key refused":        {Setting{URL: refusing}, true, "own", State{Builtin, OK, "own"}},
		"auto and nothing but one down": {Setting{URL: down, Model: "m"}, false, "theirs", State{URL, Failing, "m"}},
		"address alone, down":           {Setting{Use: URL, URL: down, Model: "m"}, true, "theirs", State{URL, Failing, "m"}},
		"built in alone":                {Setting{Use: Builtin, URL: up}, true, "own", State{Builtin, OK, "own"}},
		"built in alone, not there":     {Setting{Use: Builtin, URL: up}, false, "", State{"", Unknown, ""}},
		"no address":                    {Setting{URL: "ftp://x"}, false, "", State{"", Unknown, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, got := product(c.setting, c.builtin), ""
			err := p.Do(t.Context(), "a", func(_ context.Context, w worker, _ Setting) error { got = w.name; return nil })
			if got != c.want || (err == nil) != (c.want != "") || err != nil && apierror.Code(err) != decision.NotImplemented {
				t.Errorf("%q did it: %v", got, err)
			}
			if s := p.State(t.Context()); s != c.state || p.Available(t.Context()) != (c.want != "") {
				t.Errorf("state %+v", s)
			}
		})
	}
}

func TestAnAddressThatGoesAwayIsReplacedOnce(t *testing.T) {
	t.Parallel()
	server := at(t, 200)
	p := product(Setting{URL: server.URL}, true)
	p.Now = func() time.Time { return time.Unix(1, 0) } // what was found does not grow old
	if s := p.State(t.Context()); s.Use != URL {
		t.Fatalf("%+v", s)
	}
	server.Close()
	var asked []string
	err := p.Do(t.Context(), "a", func(ctx context.Context, w worker, _ Setting) error {
		asked = append(asked, w.name)
		_, err := w.Check(ctx)
		return err
	})
	if got := strings.Join(asked, " "); err != nil || got != "theirs own" {
		t.Errorf("%s: %v", got, err)
	}
	if s := p.State(t.Context()); s.Use != Builtin {
		t.Errorf("next %+v", s)
	}
}

func TestKeysComeFromTheirOwnVariablesOnly(t *testing.T) {
	t.Parallel()
	var sent atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent.Store(r.Header.Get("Authorization")) }))
	t.Cleanup(server.Close)
	for from, want := range map[string]string{"ENGINE_ACME": "Bearer secret of ENGINE_ACME", "SLUICE_SECRETS_KEY": "", "": ""} {
		p := product(Setting{URL: server.URL, KeyFrom: from}, false)
		if s := p.State(t.Context()); s.Health != OK || sent.Load() != want {
			t.Errorf("%s: %+v, sent %q", from, s, sent.Load())
		}
	}
}

func TestTurnsTimeAndLeaving(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := product(Setting{Concurrency: 1, Timeout: time.Minute}, true)
		hang := func(ctx context.Context, _ worker, _ Setting) error { <-ctx.Done(); return ctx.Err() }
		if err := p.Do(t.Context(), "a", hang); apierror.Code(err) != decision.GatewayTimeout {
			t.Errorf("after its time: %v", err)
		}
		ctx, leave := context.WithCancel(t.Context())
		done := make(chan error, 6)
		for range 5 { // one works, four wait
			go func() { done <- p.Do(ctx, "a", hang) }()
		}
		synctest.Wait()
		if err := p.Do(t.Context(), "a", hang); apierror.Code(err) != decision.Transcode001 || apierror.From(err).RetryAfter == 0 {
			t.Errorf("one too many: %v", err)
		}
		other, stop := context.WithCancel(t.Context())
		go func() { done <- p.Do(other, "b", hang) }()
		synctest.Wait()
		leave()
		for range 5 {
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("after leaving: %v", err)
			}
		}
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the other account: %v", err)
		}
		if err := p.Do(t.Context(), "a", func(context.Context, worker, Setting) error { return nil }); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

func TestStatesAreAskedByName(t *testing.T) {
	t.Parallel()
	got := States(t.Context(), map[string]Known{Voice: product(Setting{}, true), Vision: product(Setting{}, false)})
	if got[Voice].Health != OK || got[Vision].Use != "" {
		t.Errorf("%+v", got)
	}
}
