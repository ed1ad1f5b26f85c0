package relay

import (
	"bytes"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

// switched is a TCP proxy whose far end may change.
type switched struct {
	mu sync.Mutex
	to string
}

func (s *switched) set(to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = to
}

func (s *switched) listen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			far, err := net.Dial("tcp", s.to)
			s.mu.Unlock()
			if err != nil {
				near.Close()
				continue
			}
			go func() { _, _ = io.Copy(far, near); far.Close() }()
			go func() { _, _ = io.Copy(near, far); near.Close() }()
		}
	}()
	return l.Addr().String()
}

func quietly(dir string, now func() time.Time) Config {
	return Config{Dir: dir, MaxAge: time.Hour, Now: now, Log: slog.New(slog.DiscardHandler)}
}

func TestAgeOfASavedState(t *testing.T) {
	t.Parallel()
	saved := time.Unix(1_800_000_000, 0)
	for name, c := range map[string]struct {
		now     time.Time
		age     time.Duration
		expired bool
	}{
		"at once":                        {saved, 0, false},
		"after half an hour":             {saved.Add(30 * time.Minute), 30 * time.Minute, false},
		"after more than an hour":        {saved.Add(61 * time.Minute), 61 * time.Minute, true},
		"a clock that is a little slow":  {saved.Add(-time.Minute), 0, false},
		"a clock that was set back":      {saved.Add(-time.Hour), 1<<63 - 1, true},
		"a clock that was set far ahead": {saved.Add(1000 * time.Hour), 1000 * time.Hour, true},
	} {
		dir := t.TempDir()
		a := newStaleness(quietly(dir, func() time.Time { return saved }))
		a.connected()
		a.answered()
		a.save(0)
		a = newStaleness(quietly(dir, func() time.Time { return c.now }))
		if a.age() != c.age || a.tooOld() != c.expired || !a.known() {
			t.Errorf("%s: age %v, expired %v", name, a.age(), a.tooOld())
		}
	}
}

// Keys and configuration must both be confirmed.
func TestWhatConfirmsAState(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	a := newStaleness(quietly(t.TempDir(), func() time.Time { return now }))
	if a.known() || !a.tooOld() || a.fresh() || a.usable() {
		t.Error("nothing is known yet")
	}
	a.answered()
	if a.known() || !a.usable() {
		t.Error("the keys alone may be loaded, and are no state")
	}
	a.connected()
	if !a.known() || !a.fresh() || a.tooOld() {
		t.Error("both are confirmed")
	}
	now = now.Add(time.Minute)
	if a.fresh() || a.age() != time.Minute {
		t.Error("the feed has been silent for a minute")
	}
	a.answered()
	a.disconnected()
	now = now.Add(59 * time.Minute)
	over := a.expired()
	a.updateExpiry()
	if a.tooOld() {
		t.Error("it may serve for an hour")
	}
	now = now.Add(2 * time.Minute)
	a.updateExpiry()
	a.updateExpiry()
	<-over
	a.connected()
	a.answered()
	a.updateExpiry()
	select {
	case <-a.expired():
		t.Error("it is confirmed again")
	default:
	}
}

func TestSealedFiles(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "x.state")
	if b, err := readSealed(name); b != nil || err != nil {
		t.Errorf("no file: %q %v", b, err)
	}
	for _, body := range []string{"", "something"} {
		if err := writeSealed(name, []byte(body)); err != nil {
			t.Fatal(err)
		}
		if b, err := readSealed(name); string(b) != body || err != nil {
			t.Errorf("%q %v, want %q", b, err, body)
		}
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for what, bad := range map[string][]byte{
		"nothing": {}, "cut": good[:len(good)-1], "flipped": flip(good, 8), "another format": append([]byte("SLST9"), good[5:]...), "longer": append(slices.Clone(good), 0),
	} {
		if err := os.WriteFile(name, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if b, err := readSealed(name); err == nil {
			t.Errorf("%s: %q", what, b)
		}
	}
}

// Damaged files are told of and put aside; the edge is as if it had none.
func TestDamagedStateIsNotServed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"config.state", "confirmed.state", logName} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("not what it was"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	r, err := New(Config{Upstreams: []string{"127.0.0.1:1"}, Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer r.listener.Close()
	if _, ok := r.lastGood.saved(); ok || r.staleness.known() || r.feed.served != nil || r.Status().State != Starting {
		t.Error("it serves from a damaged state")
	}
	for _, name := range []string{"config.state", "confirmed.state", logName} {
		if !strings.Contains(log.String(), name) {
			t.Errorf("%s is not told of:\n%s", name, &log)
		}
	}
}

// versionsOf are the names and versions in an answer; a removed one has none.
func versionsOf(a *discovery.DeltaDiscoveryResponse) map[string]string {
	m := map[string]string{}
	for _, r := range a.GetResources() {
		m[r.GetName()] = r.GetVersion()
	}
	for _, name := range a.GetRemovedResources() {
		m[name] = ""
	}
	return m
}

func TestLocalAnswers(t *testing.T) {
	t.Parallel()
	state := map[string]resources{resource.RouteType: {"a": {Name: "a", Version: "1"}, "b": {Name: "b", Version: "1"}}}
	holds := func(q *discovery.DeltaDiscoveryRequest, held map[string]string) *discovery.DeltaDiscoveryRequest {
		q.InitialResourceVersions = held
		return q
	}
	for name, c := range map[string]struct {
		q    *discovery.DeltaDiscoveryRequest
		want map[string]string // nil: no answer
	}{
		"all":                     {ask(resource.RouteType), map[string]string{"a": "1", "b": "1"}},
		"a star":                  {ask(resource.RouteType, "*"), map[string]string{"a": "1", "b": "1"}},
		"some":                    {ask(resource.RouteType, "a", "c"), map[string]string{"a": "1", "c": ""}},
		"a type without any":      {ask(resource.EndpointType), map[string]string{}},
		"all, and it has them":    {holds(ask(resource.RouteType), map[string]string{"a": "1", "b": "1"}), nil},
		"all, and it has others":  {holds(ask(resource.RouteType), map[string]string{"a": "0", "z": "1"}), map[string]string{"a": "1", "b": "1", "z": ""}},
		"some, and it has them":   {holds(ask(resource.RouteType, "a"), map[string]string{"a": "1"}), nil},
		"some, and it has others": {holds(ask(resource.RouteType, "a"), map[string]string{"a": "2"}), map[string]string{"a": "1"}},
	} {
		a := newLocal(state).answer(c.q)
		if (a == nil) != (c.want == nil) || (a != nil && !maps.Equal(versionsOf(a), c.want)) {
			t.Errorf("%s: %v", name, a)
		}
	}
	l := newLocal(state)
	l.answer(ask(resource.RouteType))
	if a := l.answer(accept(resource.RouteType, "1")); a != nil {
		t.Errorf("an acceptance is answered with %v", a)
	}
}

// An Envoy that starts anew replaces what there was; one that comes back adds.
func TestBook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := quietly(dir, time.Now)
	b := loadLastGood(c, nil)
	s := b.session()
	s.request(ask(resource.ClusterType))
	s.response(offer(resource.ClusterType, "1", "a=1", "b=1"))
	s.request(accept(resource.ClusterType, "1"))
	again := b.session()
	q := ask(resource.ClusterType)
	q.InitialResourceVersions = map[string]string{"a": "1", "b": "1"}
	again.request(q)
	removal := offer(resource.ClusterType, "2", "c=1")
	removal.RemovedResources = []string{"a"}
	again.response(removal)
	again.request(accept(resource.ClusterType, "2"))
	again.request(accept(resource.ClusterType, "2")) // twice
	if err := b.save(); err != nil {
		t.Fatal(err)
	}
	b = loadLastGood(c, nil)
	if got := slices.Sorted(maps.Keys(b.types[resource.ClusterType])); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("%v", got)
	}
	anew := b.session()
	anew.request(ask(resource.ClusterType))
	anew.response(offer(resource.ClusterType, "1", "d=1"))
	anew.request(accept(resource.ClusterType, "1"))
	if got := slices.Sorted(maps.Keys(b.types[resource.ClusterType])); !slices.Equal(got, []string{"d"}) {
		t.Errorf("%v", got)
	}
	if _, ok := b.saved(); ok {
		t.Error("clusters alone are no state to serve from")
	}
}

func FuzzReadSealed(f *testing.F) {
	f.Add([]byte(magic + "body1234"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "config.state"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		loadLastGood(quietly(dir, time.Now), nil).size()
		b := &lastGood{types: map[string]resources{}}
		_ = b.decode(raw)
	})
}
