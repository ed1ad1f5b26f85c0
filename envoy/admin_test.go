package envoy

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

const twoListeners = `{"listener_statuses":[
 {"name":"gateway","local_address":{"socket_address":{"address":"127.0.0.1","port_value":8080}}},
 {"name":"runtime","local_address":{"socket_address":{"address":"127.0.0.1","port_value":8090}}}]}`

func TestListening(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		workers, listeners string
		ports              []int
		want               bool
	}{
		"both, at work":           {"1", twoListeners, []int{8080, 8090}, true},
		"workers not yet started": {"0", twoListeners, []int{8080, 8090}, false},
		"one of two":              {"1", twoListeners, []int{8080, 8091}, false},
		"none":                    {"1", "{}", []int{8080}, false},
		"nonsense":                {"1", "<html>", []int{8080}, false},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/stats" {
				_, _ = fmt.Fprintf(w, "listener_manager.workers_started: %s\n", c.workers)
				return
			}
			_, _ = fmt.Fprint(w, c.listeners)
		}))
		if got := newAdmin(srv.Listener.Addr().String()).listening(context.Background(), c.ports); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		srv.Close()
	}
}

func TestActiveRequests(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, "http.admin.downstream_rq_active: 1\nhttp.gateway.downstream_rq_active: 2\nhttp.runtime.downstream_rq_active: 3\n")
	}))
	a := newAdmin(srv.Listener.Addr().String())
	if got := a.activeRequests(context.Background()); got != 5 {
		t.Errorf("%d requests, want 5: those of the admin interface do not count", got)
	}
	srv.Close()
	if got := a.activeRequests(context.Background()); got != 0 {
		t.Errorf("%d requests at an Envoy that is gone", got)
	}
}

func TestAnErrorOfTheAdminInterfaceIsAnError(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	if _, err := newAdmin(srv.Listener.Addr().String()).call(context.Background(), http.MethodPost, "/x"); err == nil {
		t.Fatal("no error for status 404")
	}
}

func FuzzListsPorts(f *testing.F) {
	f.Add([]byte(twoListeners), 8080)
	f.Add([]byte("null"), 0)
	f.Fuzz(func(t *testing.T, answer []byte, port int) {
		if port != 0 && listsPorts(answer, []int{port}) && len(answer) < len(`{"listener_statuses":[]}`) {
			t.Fatalf("a listener on %d in %q", port, answer)
		}
	})
}
