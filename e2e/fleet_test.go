package e2e

import (
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/e2e/harness"
)

// wire is a TCP proxy that can be cut.
type wire struct {
	to       string
	listener net.Listener

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

// newWire returns a wire to addr.
func newWire(t testing.TB, addr string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{to: addr, listener: l, conns: map[net.Conn]bool{}}
	t.Cleanup(func() { l.Close(); w.set(true) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.carry(c)
		}
	}()
	return w
}

func (w *wire) addr() string { return w.listener.Addr().String() }

// set cuts the wire, with everything that runs over it, or mends it.
func (w *wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	if cut {
		for c := range w.conns {
			c.Close()
		}
		clear(w.conns)
	}
}

// keep notes a connection, unless the wire is cut.
func (w *wire) keep(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		c.Close()
		return false
	}
	w.conns[c] = true
	return true
}

func (w *wire) carry(c net.Conn) {
	if !w.keep(c) {
		return
	}
	far, err := net.Dial("tcp", w.to)
	if err != nil || !w.keep(far) {
		c.Close()
		return
	}
	go func() { _, _ = io.Copy(far, c); far.Close(); c.Close() }()
	_, _ = io.Copy(c, far)
	far.Close()
	c.Close()
}

// edge is one more edge of a stack, in a process of the test.
type edge struct {
	*harness.Process
	name, base, metrics string
	env                 map[string]string
}

// secrets are those of the stack's processes.
func (s *stack) secrets(t testing.TB) map[string]string {
	t.Helper()
	env := maps.Clone(s.env)
	maps.Copy(env, readEnv(t, filepath.Join(s.dir, "secrets.env")))
	return env
}

// addEdge starts one more edge, whose control plane is at xds, and waits until
// it serves.
func (s *stack) addEdge(t testing.TB, name, xds string, extra ...string) *edge {
	t.Helper()
	env := s.secrets(t)
	its, err := harness.EdgeSettings(name, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(env, its)
	env["SLUICE_XDS_ADDR"] = xds
	for i := 0; i < len(extra); i += 2 {
		env[extra[i]] = extra[i+1]
	}
	e := &edge{name: name, base: "http://" + env["SLUICE_GATEWAY_ADDR"], metrics: "http://" + env["SLUICE_EDGE_METRICS_ADDR"] + "/metrics", env: env}
	e.start(t)
	t.Cleanup(func() { e.stop(t) })
	eventually(t, name+" serves, and nobody in its place", func() error {
		if !strings.Contains(e.Output(), "edge is serving") {
			return errors.New(e.Tail())
		}
		return nil
	})
	e.answers(t, s.dev["SLUICE_API_KEY"], http.StatusOK)
	return e
}

func (e *edge) start(t testing.TB) {
	t.Helper()
	e.Process = run(t, e.env, "edge")
}

// stop ends the edge in order.
func (e *edge) stop(t testing.TB) {
	t.Helper()
	if err := e.Stop(); err != nil {
		t.Errorf("%s: %v", e.name, err)
	}
}

// answers waits until a request with key has the status.
func (e *edge) answers(t testing.TB, key string, status int) {
	t.Helper()
	eventually(t, e.name+" answers", func() error {
		r, err := try(http.MethodGet, e.base+"/v1/streams?limit=1", key, nil)
		if err == nil && r.StatusCode != status {
			err = errors.New(r.Status + " " + r.body + "\n" + e.Tail())
		}
		return err
	})
}

// is waits until the agent says that the edge is in a state.
func (e *edge) is(t testing.TB, state string) {
	t.Helper()
	e.shows(t, `sluice_agent_state{state="`+state+`"} 1`)
}

// shows waits until the agent's metrics have a line.
func (e *edge) shows(t testing.TB, line string) {
	t.Helper()
	eventually(t, e.name+" shows "+line, func() error {
		r, err := try(http.MethodGet, e.metrics, "", nil)
		if err == nil && !strings.Contains(r.body, line) {
			err = errors.New(r.body)
		}
		return err
	})
}

// keepsToItsShare waits until the edge lets the seeded account have no more than
// a share of its limit of a million.
func (e *edge) keepsToItsShare(t testing.TB, key string) {
	t.Helper()
	e.shows(t, `sluice_agent_limits{by="share"} 1`)
	eventually(t, e.name+" keeps to its share", func() error {
		r, err := try(http.MethodGet, e.base+"/v1/streams?limit=1", key, nil)
		if err == nil && number(t, r, "X-RateLimit-Remaining") > 500_000 {
			err = errors.New(r.Header.Get("X-RateLimit-Remaining"))
		}
		return err
	})
}

// listed waits until the fleet shows the edge in a state.
func (s *stack) listed(t testing.TB, name, state string) {
	t.Helper()
	eventually(t, name+" is shown as "+state, func() error {
		status, out, errs := sluice(t, s.admin(), "edges")
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == name && f[1] == state {
				return nil
			}
		}
		return errors.New(out + errs + exitText(status))
	})
}

func exitText(status int) string {
	if status == 0 {
		return ""
	}
	return "the command failed"
}

// admin is the environment of commands.
func (s *stack) admin() map[string]string {
	return map[string]string{"SLUICE_ADMIN_URL": s.dev["SLUICE_ADMIN_URL"], "SLUICE_ADMIN_KEY": s.dev["SLUICE_ADMIN_KEY"]}
}

// outage keeps what is cut off so for as long as SLUICE_TEST_OUTAGE says, and
// checks that it serves all the time; unset: no longer than the test itself needs.
func outage(t testing.TB, serves func() error) {
	t.Helper()
	text := os.Getenv("SLUICE_TEST_OUTAGE")
	if text == "" {
		return
	}
	long, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("SLUICE_TEST_OUTAGE is %q: expected a time such as 5m", text)
	}
	n, failed := 0, 0
	for end := time.After(long); ; n++ {
		select {
		case <-end:
			t.Logf("%d requests in %v, %d failed", n, long, failed)
			if failed > 0 {
				t.Errorf("%d of %d requests failed", failed, n)
			}
			return
		case <-time.After(50 * time.Millisecond):
			if err := serves(); err != nil {
				failed++
				t.Log(err)
			}
		}
	}
}

// An edge that is cut off goes on, also across a crash; what changed meanwhile
// reaches it when it is connected again. `make outages` cuts it off for 5 minutes.
func TestEdgeCutOffFromTheControlPlane(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	w := newWire(t, s.env["SLUICE_XDS_ADDR"])
	e := s.addEdge(t, "edge-cut", w.addr())
	s.listed(t, "edge-cut", "current")
	e.shows(t, `sluice_agent_limits{by="shared"} 1`)
	if _, out, _ := sluice(t, s.admin(), "edges"); !strings.Contains(out, "LIMITS") || !strings.Contains(out, "of all ") {
		t.Errorf("how edges limit is not shown:\n%s", out)
	}
	kept, _ := s.newKey(t, "streams:read")
	revoked, id := s.newKey(t, "streams:read")
	e.answers(t, kept, 200)
	e.answers(t, revoked, 200)
	e.is(t, "live")
	w.set(true)
	e.is(t, "cached")
	outage(t, func() error {
		r, err := try(http.MethodGet, e.base+"/v1/streams?limit=1", kept, nil)
		if err == nil && r.StatusCode != http.StatusOK {
			err = errors.New(r.Status + " " + r.body)
		}
		return err
	})
	late, _ := s.newKey(t, "streams:read")
	wantStatus(t, call(t, http.MethodDelete, s.url("/v1/auth/keys/"+id), s.dev["SLUICE_SESSION_TOKEN"], nil), http.StatusNoContent)
	for _, crash := range []bool{false, true} {
		if crash {
			e.Kill()
			e.start(t)
		}
		e.answers(t, kept, 200)
		e.answers(t, revoked, 200) // it cannot know
		e.answers(t, late, 401)
		e.answers(t, unknownKey, 401)
		e.is(t, "cached")
		e.keepsToItsShare(t, kept)
	}
	w.set(false)
	e.answers(t, revoked, 401)
	e.answers(t, late, 200)
	e.is(t, "live")
	e.shows(t, `sluice_agent_limits{by="shared"} 1`)
	s.listed(t, "edge-cut", "current")
}

// An edge that has heard of no control plane for too long stops, and comes back
// when it has.
func TestEdgeStopsWhenItsStateIsTooOld(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	w := newWire(t, s.env["SLUICE_XDS_ADDR"])
	e := s.addEdge(t, "edge-old", w.addr(), "SLUICE_EDGE_MAX_STATE_AGE", "10s")
	key := s.dev["SLUICE_API_KEY"]
	w.set(true)
	e.answers(t, key, 503)
	e.is(t, "closed")
	e.Kill()
	e.start(t)
	e.answers(t, key, 503)
	e.is(t, "closed")
	w.set(false)
	e.answers(t, key, 200)
	e.is(t, "live")
}
