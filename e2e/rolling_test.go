package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	neturl "net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/e2e/harness"
)

// member is one process of a platform that has two of each kind.
type member struct {
	*harness.Process
	kind, health string
	env          map[string]string
	gateway      string // of an edge
	runtime      string // likewise
	well         atomic.Bool
}

func (m *member) start(t testing.TB) {
	t.Helper()
	m.Process = run(t, m.env, m.kind)
}

// isWell waits until the process says that it is.
func (m *member) isWell(t testing.TB) {
	t.Helper()
	eventually(t, m.kind+" is well", func() error {
		r, err := try(http.MethodGet, m.health, "", nil)
		if err == nil && r.StatusCode != http.StatusOK {
			err = errors.New(r.Status)
		}
		if err != nil {
			return fmt.Errorf("%w\n%s", err, m.Tail())
		}
		return nil
	})
}

// replace ends the process in order, as an upgrade does, and starts it again.
func (m *member) replace(t testing.TB) {
	t.Helper()
	if err := m.Stop(); err != nil {
		t.Error(err)
	}
	m.start(t)
	m.isWell(t)
}

// pair starts two processes of a kind; variables are those of its addresses, the
// one that tells its health first.
func pair(t testing.TB, base map[string]string, kind, health string, addrs map[string][2]string, asked string) []*member {
	t.Helper()
	var both []*member
	for i := range 2 {
		env := maps.Clone(base)
		for variable, two := range addrs {
			env[variable] = two[i]
		}
		m := &member{kind: kind, env: env, health: "http://" + env[asked] + health, gateway: env["SLUICE_GATEWAY_ADDR"], runtime: env["SLUICE_RUNTIME_ADDR"]}
		m.start(t)
		t.Cleanup(func() { m.Kill() }) // the last one of its kind
		both = append(both, m)
	}
	return both
}

// quick is the default configuration with checks of health so frequent that the
// test need not wait for them.
func quick(t testing.TB, dir string) (file string) {
	t.Helper()
	text, err := os.ReadFile("../deploy/sluice.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/health", "/health", "/openapi.json"} {
		text = bytes.Replace(text, []byte("health_path: "+path+"}"), []byte("health: {path: "+path+", interval: 200ms}}"), 1)
	}
	file = filepath.Join(dir, "quick.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// client uses a platform without ever trying again.
type steadyClient struct {
	key   string
	edges []*member
	turn  atomic.Int64

	mu      sync.Mutex
	done    int
	failed  []string
	deleted map[string]bool // streams, of which a webhook must tell
}

// watch asks the edges' agents whether they are well, as a balancer does.
func (c *steadyClient) watch(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		for _, e := range c.edges {
			r, err := try(http.MethodGet, e.health, "", nil)
			e.well.Store(err == nil && r.StatusCode == http.StatusOK)
		}
		<-tick.C
	}
}

// edge is the next one that is well.
func (c *steadyClient) edge() *member {
	for range 1000 {
		if e := c.edges[c.turn.Add(1)%int64(len(c.edges))]; e.well.Load() {
			return e
		}
	}
	return c.edges[0]
}

// use makes requests of every kind until ctx ends, and then finishes the round. It begins five
// rounds a second at most: the processes that start share the cores with it.
func (c *steadyClient) use(ctx context.Context, keepAlive bool) {
	h := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: !keepAlive}}
	pace := time.NewTicker(time.Second / 5)
	defer pace.Stop()
	for ; ctx.Err() == nil; <-pace.C {
		e := c.edge()
		made := struct{ ID string }{}
		c.ask(h, http.MethodPost, "http://"+e.gateway+"/v1/streams", `{"title":"rolling","protocol":"rtmp"}`, http.StatusCreated, &made)
		c.ask(h, http.MethodGet, "http://"+c.edge().gateway+"/v1/webhooks", "", http.StatusOK, nil)
		c.ask(h, http.MethodPost, "http://"+c.edge().runtime+"/v1/chat/completions", `{"model":"echo-1","messages":[{"role":"user","content":"one two"}]}`, http.StatusOK, nil)
		if made.ID != "" && c.ask(h, http.MethodDelete, "http://"+c.edge().gateway+"/v1/streams/"+made.ID, "", http.StatusNoContent, nil) {
			c.mu.Lock()
			c.deleted[made.ID] = true
			c.mu.Unlock()
		}
	}
}

// meets replaces a process, and fails if no request ended meanwhile.
func (c *steadyClient) meets(t testing.TB, m *member) {
	t.Helper()
	ended := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.done
	}
	before := ended()
	m.replace(t)
	if ended() == before {
		t.Errorf("no request met the end of a %s", m.kind)
	}
}

// ask makes one request, and notes what is not as it should be.
func (c *steadyClient) ask(h *http.Client, method, url, body string, want int, into any) bool {
	status, text, err := c.send(h, method, url, body)
	if err == nil && into != nil && status == want {
		err = json.Unmarshal([]byte(text), into)
	}
	if err == nil && strings.Contains(url, "/chat/") && !strings.HasSuffix(strings.TrimSpace(text), "[DONE]") {
		err = errors.New("the stream broke off")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done++
	if err != nil || status != want {
		c.failed = append(c.failed, fmt.Sprintf("%s %s: %d %v %.300s", method, url, status, err, text))
		return false
	}
	return true
}

func (c *steadyClient) send(h *http.Client, method, url, body string) (status int, text string, err error) {
	req, err := http.NewRequest(method, url, io.NopCloser(strings.NewReader(body))) // a body that cannot be sent again
	if err != nil {
		return 0, "", err
	}
	if body == "" {
		req.Body = nil
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := h.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

// ownSettings makes a user of the database for each kind of process, and gives each
// the secrets that are its own in place of the platform's. Control planes no longer
// have edges speak as before.
func ownSettings(t *testing.T, base map[string]string) map[string]map[string]string {
	t.Helper()
	url, err := neturl.Parse(base["SLUICE_DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	own, logins := map[string]map[string]string{"controlplane": {"SLUICE_IDENTITY_V1": ""}}, []string(nil)
	for _, kind := range []string{"controlplane", "worker", "runtime", "media"} {
		user, password := kind+strings.TrimPrefix(url.Path, "/"), rand.Text()
		logins = append(logins, kind+":"+user+":"+password)
		theirs := *url
		theirs.User = neturl.UserPassword(user, password)
		if own[kind] == nil {
			own[kind] = map[string]string{"SLUICE_FEED_TOKEN": ""}
		}
		own[kind]["SLUICE_DATABASE_URL"] = theirs.String()
	}
	env := maps.Clone(base)
	env["SLUICE_DATABASE_LOGINS"] = strings.Join(logins, ",")
	(&stack{}).wantCommand(t, env, 0, "", "migrate")
	for kind, product := range map[string]string{"worker": "media", "media": "media", "runtime": "runtime"} {
		status, out, errs := sluice(t, base, "secrets", "product", product)
		if status != 0 {
			t.Fatal(out, errs)
		}
		for line := range strings.Lines(out) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			if kind != "worker" || name != "SLUICE_SECRETS_KEY" {
				own[kind][name] = value
			}
		}
	}
	own["runtime"]["SLUICE_SECRETS_KEY"] = ""
	return own
}

// Every process is replaced, one after the other, while clients that never try
// again use the platform: nothing fails, and no webhook is lost. At first they share
// every secret and the database's owner, and edges speak as those of before. Then
// workers, runtimes and products are replaced once more, by such as have secrets and
// users of their own.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	a := freeAddrs(t, 20)
	two := func(i int) [2]string { return [2]string{a[2*i], a[2*i+1]} }
	list := func(i int) string { return a[2*i] + "," + a[2*i+1] }
	url, got, _ := receiver(t)
	base := settings(t, dir)
	maps.Copy(base, map[string]string{
		"SLUICE_ANNOUNCE": "3s", "SLUICE_WEBHOOK_ALLOW_CIDRS": "127.0.0.1/32", "SLUICE_EDGE_CONCURRENCY": "1", "SLUICE_FFMPEG": "off", "SLUICE_SPEECH": "off", "SLUICE_VOICE": "off", "SLUICE_TESSERACT": "off",
		"SLUICE_API_UPSTREAM": list(2), "SLUICE_RUNTIME_UPSTREAM": list(4), "SLUICE_MEDIA_UPSTREAM": list(5),
		"SLUICE_GATEWAY_ADDR": a[12], "SLUICE_PUBLIC_URL": "http://" + a[12], "SLUICE_FEED_TOKEN": rand.Text() + rand.Text(),
	})
	for _, name := range []string{"SLUICE_SECRETS_KEY", "SLUICE_IDENTITY_SECRETS"} {
		var b [32]byte
		_, _ = rand.Read(b[:])
		base[name] = hex.EncodeToString(b[:])
	}
	base["SLUICE_IDENTITY_V1"] = "api,media,placeholder,runtime"
	(&stack{}).wantCommand(t, base, 0, "", "seed")
	own := ownSettings(t, base)
	dev := readEnv(t, filepath.Join(dir, "dev.env"))

	edges := maps.Clone(base)
	edges["SLUICE_XDS_ADDR"] = list(1)
	replicas := pair(t, base, "controlplane", "/health", map[string][2]string{"SLUICE_ADMIN_ADDR": two(0), "SLUICE_XDS_ADDR": two(1), "SLUICE_API_LISTEN": two(2)}, "SLUICE_ADMIN_ADDR")
	commands := map[string]string{"SLUICE_ADMIN_URL": "http://" + a[0], "SLUICE_ADMIN_KEY": dev["SLUICE_ADMIN_KEY"]}
	workers := pair(t, base, "worker", "/health", map[string][2]string{"SLUICE_WORKER_LISTEN": two(3)}, "SLUICE_WORKER_LISTEN")
	runtimes := pair(t, base, "runtime", "/openapi.json", map[string][2]string{"SLUICE_RUNTIME_LISTEN": two(4)}, "SLUICE_RUNTIME_LISTEN")
	products := pair(t, base, "media", "/health", map[string][2]string{"SLUICE_MEDIA_LISTEN": two(5)}, "SLUICE_MEDIA_LISTEN")
	front := pair(t, edges, "edge", "/health", map[string][2]string{"SLUICE_GATEWAY_ADDR": two(6), "SLUICE_RUNTIME_ADDR": two(7), "SLUICE_ENVOY_ADMIN_ADDR": two(8), "SLUICE_EDGE_METRICS_ADDR": two(9),
		"SLUICE_EDGE_NAME": {"edge-1", "edge-2"}, "SLUICE_STATE_DIR": {filepath.Join(dir, "one"), filepath.Join(dir, "two")}}, "SLUICE_EDGE_METRICS_ADDR")
	all := append(append(append(append(replicas, workers...), runtimes...), products...), front...)
	for _, m := range all {
		m.isWell(t)
	}
	// A change of products in use: each edge must get over it, and over what comes later.
	(&stack{}).wantCommand(t, commands, 0, "every live edge holds", "apply", "--wait", "-f", quick(t, dir))
	s := &stack{dir: dir, env: commands, dev: map[string]string{"SLUICE_API_KEY": dev["SLUICE_API_KEY"], "SLUICE_GATEWAY_URL": "http://" + a[12]}}
	s.subscribe(t, url, "stream.deleted")

	ctx, stop := context.WithCancel(t.Context())
	c := &steadyClient{key: dev["SLUICE_API_KEY"], edges: front, deleted: map[string]bool{}}
	for _, e := range front {
		e.well.Store(true)
	}
	var load, balancer sync.WaitGroup
	balancing, balanced := context.WithCancel(t.Context())
	balancer.Go(func() { c.watch(balancing) })
	for i := range 3 {
		load.Go(func() { c.use(ctx, i > 0) })
	}
	maps.Copy(replicas[0].env, own["controlplane"])
	maps.Copy(replicas[1].env, own["controlplane"])
	for _, m := range all {
		c.meets(t, m)
	}
	// Edges now say for whom each value is: the others can do without the platform's.
	for _, m := range slices.Concat(workers, runtimes, products) {
		maps.Copy(m.env, own[m.kind])
		c.meets(t, m)
	}
	stop()
	load.Wait()
	balanced()
	balancer.Wait()
	if len(c.failed) > 0 || c.done < 100 {
		t.Errorf("%d of %d requests failed:\n%s\n%s", len(c.failed), c.done, strings.Join(c.failed, "\n"), refused(front))
	}
	t.Logf("%d requests, %d failed, %d streams deleted", c.done, len(c.failed), len(c.deleted))
	c.told(t, got)
	s.wantStatusCommand(t, 0, "2 controlplane, 2 media, 2 runtime, 2 worker", "2 live")
}

// refused are the lines of the edges' access logs about requests that failed there.
func refused(edges []*member) (lines string) {
	for _, e := range edges {
		for line := range strings.Lines(e.Output()) {
			if strings.Contains(line, `"status":50`) {
				lines += line
			}
		}
	}
	return lines
}

// told waits until webhooks have told of every stream that was deleted.
func (c *steadyClient) told(t *testing.T, got chan hook) {
	t.Helper()
	for len(c.deleted) > 0 {
		var event struct {
			Stream string `json:"stream_id"`
		}
		if err := json.Unmarshal(receive(t, got).body, &event); err != nil {
			t.Fatal(err)
		}
		delete(c.deleted, event.Stream)
	}
}
