package app

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/e2e/freeport"
)

func TestOnlyEdgesAreToldThatAProcessLeaves(t *testing.T) {
	t.Parallel()
	var leaving atomic.Bool
	h := failHealthChecks(&leaving, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	for _, c := range []struct {
		leaving bool
		agent   string
		want    int
	}{{false, healthChecks, 204}, {true, "curl/8", 204}, {true, healthChecks, 503}} {
		leaving.Store(c.leaving)
		r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
		r.Header.Set("User-Agent", c.agent)
		if h.ServeHTTP(w, r); w.Code != c.want {
			t.Errorf("%+v: %d", c, w.Code)
		}
	}
}

// A process that is told to stop serves on while it announces that, and ends the
// requests that are under way.
func TestAnnouncedEnd(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	begun, finish, announced := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	end := shutdownPolicy{grace: time.Minute, sleep: func(time.Duration) { <-announced }}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, end, endpoint{name: "test", addr: addr, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				begun <- struct{}{}
				<-finish
			}
			_, _ = io.WriteString(w, "done")
		})})
	}()
	ask := func(path, agent string) (status int, body string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("User-Agent", agent)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(b)
	}
	for status := 0; status != 200; status, _ = ask("/", "test") {
	}
	slow := make(chan string, 1)
	go func() { _, body := ask("/slow", "test"); slow <- body }()
	<-begun
	stop()
	for status := 200; status != 503; status, _ = ask("/", healthChecks) {
	}
	if status, body := ask("/", "test"); status != 200 {
		t.Error("while the end is announced:", status, body)
	}
	close(announced)
	close(finish)
	if body := <-slow; body != "done" {
		t.Error("the request under way:", body)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestStopping(t *testing.T) {
	t.Parallel()
	for announce, want := range map[string]time.Duration{"": 6 * time.Second, "0s": 0, "1m": time.Minute} {
		env := Environment{Lookup: func(name string) (string, bool) { return announce, name == "SLUICE_ANNOUNCE" }}
		if end, err := env.shutdownPolicy(); err != nil || end.announce != want || end.grace != stopTimeout {
			t.Errorf("%q: %+v %v", announce, end, err)
		}
	}
	for _, name := range []string{"SLUICE_ANNOUNCE", "SLUICE_GRACE"} {
		env := Environment{Lookup: func(n string) (string, bool) { return "-1s", n == name }}
		if _, err := env.shutdownPolicy(); err == nil {
			t.Errorf("%s may be -1s", name)
		}
	}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	addrs, err := freeport.Addrs(1)
	if err != nil {
		t.Fatal(err)
	}
	return addrs[0]
}
