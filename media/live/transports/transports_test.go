package transports

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/media/live/aes67"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// What a bridge writes counts line by line, however it comes; what is no line of the
// contract, or too long, is left out and does not hide the next.
func TestLinesOfABridge(t *testing.T) {
	t.Parallel()
	var got []string
	l := &lines{tell: func(l line) { got = append(got, l.State+l.Message+l.Gone) }}
	text := `{"state":"running"}` + "\nno JSON\n" + `{"message":"` + strings.Repeat("x", maxLine) + `"}` + "\n\n" + `{"gone":"a"}` + "\n" + `{"state":"never ended"}`
	for part := range slices.Chunk([]byte(text), 7) {
		if n, err := l.Write(part); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	if !slices.Equal(got, []string{"running", "a"}) || len(l.held) > maxLine {
		t.Errorf("%q, %d bytes held", got, len(l.held))
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte(`{"source":{"name":"a"}}`+"\n"), 3)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		l := &lines{tell: func(line) {}}
		for part := range slices.Chunk(b, max(1, size)) {
			_, _ = l.Write(part)
		}
		if len(l.held) > maxLine {
			t.Fatalf("%d bytes are held", len(l.held))
		}
	})
}

// A link's password opens its own path, in its own direction, and for a source only
// while its stream may go on air.
func TestWhatALinkOpens(t *testing.T) {
	t.Parallel()
	s := &Supervisor{workers: map[string]*worker{}}
	in := &worker{Supervisor: s, wanted: wanted{ID: "inp_1", Direction: In, PlaybackID: "play_1"}, password: "p"}
	out := &worker{Supervisor: s, wanted: wanted{ID: "out_1", Direction: Out, PlaybackID: "play_1"}, password: "q"}
	s.workers["inp_1"], s.workers["out_1"] = in, out
	if s.Allows("inp_1", "p", "publish", "live/play_1") {
		t.Error("before it is admitted")
	}
	in.admit(true)
	for _, c := range []struct {
		user, password, action, path string
		want                         bool
	}{
		{"inp_1", "p", "publish", "live/play_1", true}, {"inp_1", "p", "read", "live/play_1", false}, {"inp_1", "p", "publish", "live/play_2", false},
		{"inp_1", "q", "publish", "live/play_1", false}, {"inp_1", "", "publish", "live/play_1", false}, {"inp_2", "p", "publish", "live/play_1", false},
		{"out_1", "q", "read", "live/play_1", true}, {"out_1", "q", "publish", "live/play_1", false},
	} {
		if got := s.Allows(c.user, c.password, c.action, c.path); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// Publishers that are closed are remembered where a link waits for it.
func TestPublishersThatAreClosed(t *testing.T) {
	t.Parallel()
	s := &Supervisor{workers: map[string]*worker{}, kicked: map[string]bool{}}
	in := &worker{Supervisor: s, wanted: wanted{ID: "inp_1", Direction: In, PlaybackID: "play_1"}}
	s.workers["inp_1"] = in
	s.Kicked("play_2")
	s.Kicked("play_1")
	if len(s.kicked) != 1 || !in.takeKick() || in.takeKick() {
		t.Errorf("%v", s.kicked)
	}
}

func TestChannelsThatArePicked(t *testing.T) {
	t.Parallel()
	out := make([]float32, 4)
	pick(out, []float32{1, 2, 3, 4, 5, 6}, 3, []int{3, 1})
	if !slices.Equal(out, []float32{3, 1, 6, 4}) {
		t.Errorf("%v", out)
	}
	pick(out, []float32{1, 2}, 1, []int{1, 2})
	if !slices.Equal(out, []float32{1, 0, 2, 0}) {
		t.Errorf("%v", out)
	}
}

// Groups lie in the first range of groups that is allowed.
func TestGroups(t *testing.T) {
	t.Parallel()
	v := Service{Settings: Settings{Network: aes67.Network{Allow: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("239.69.4.0/22")}}}}
	seen := map[netip.Addr]bool{}
	for i := range 100 {
		g := v.group(fmt.Sprint("out_", i))
		if !v.Settings.Network.Allow[1].Contains(g) {
			t.Fatal(g)
		}
		seen[g] = true
	}
	if len(seen) < 80 {
		t.Errorf("%d groups of 100", len(seen))
	}
	if g := (Service{}).group("out_1"); g.IsValid() {
		t.Error(g)
	}
}

// Whoever floods the network with announcements fills the catalogue, and no more.
func TestTheCatalogueIsBounded(t *testing.T) {
	t.Parallel()
	var c catalogue
	for i := range 3 * maxSources {
		c.add(Source{Transport: Dante, ID: fmt.Sprint(i)})
		c.alias(fmt.Sprint("a", i), fmt.Sprint(i))
		c.drop(Source{Transport: Dante, ID: fmt.Sprint("other ", i)})
	}
	if len(c.by) > 2*maxSources+1 {
		t.Errorf("%d aliases", len(c.by))
	}
	if heard, gone := c.take(); len(heard) != maxSources || len(gone) != maxSources {
		t.Errorf("%d heard, %d gone", len(heard), len(gone))
	}
	if heard, gone := c.take(); len(heard)+len(gone) > 0 {
		t.Error("taken twice")
	}
	c.drop(Source{Transport: Dante, ID: "1"})
	if _, gone := c.take(); len(gone) != 1 {
		t.Error("the end of a source that was taken before is lost")
	}
	for i := range maxSources {
		c.add(Source{Transport: Dante, ID: fmt.Sprint(i)})
	}
	c.add(Source{Transport: NDI, ID: "camera"})
	c.add(Source{Transport: Dante, ID: "0", Name: "renamed"})
	heard, _ := c.take()
	if !slices.ContainsFunc(heard, func(f Source) bool { return f.Transport == NDI }) || !slices.ContainsFunc(heard, func(f Source) bool { return f.Name == "renamed" }) {
		t.Error("a flood of one transport hides another's sources, or news of those that are known")
	}
}

// Whatever is announced, a bounded number of sources is remembered, and those that were
// there first stay.
func TestRememberedSourcesAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := &Supervisor{DB: pgtest.Pool(t), Now: func() time.Time { return now }}
	for round := range 3 {
		heard := []Source{{Transport: Dante, ID: "stage", Name: fmt.Sprint("Stage ", round), SeenAt: now}}
		for i := range maxSources {
			heard = append(heard, Source{Transport: Dante, ID: fmt.Sprint("flood ", round, " ", i), SeenAt: now})
		}
		if err := s.remember(t.Context(), append(heard, Source{Transport: NDI, ID: "camera", SeenAt: now}), nil); err != nil {
			t.Fatal(err)
		}
	}
	var dante, ndi int
	var name string
	err := s.DB.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE transport = 'dante'), count(*) FILTER (WHERE transport = 'ndi'), max(name) FILTER (WHERE id = 'stage')
		FROM media_transport_sources`).Scan(&dante, &ndi, &name)
	if err != nil || dante != maxSources || ndi != 1 || name != "Stage 2" {
		t.Errorf("%d of Dante, %d of NDI, %q, %v", dante, ndi, name, err)
	}
}

// An operator who allows less than before is obeyed by inputs that are there.
func TestASourceThatIsForbiddenNowIsNotCalled(t *testing.T) {
	t.Parallel()
	s := &Supervisor{Settings: Settings{Network: aes67.Network{Interfaces: []aes67.Interface{{Name: "lo"}}, Allow: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/28")}}}}
	w := &worker{Supervisor: s, wanted: wanted{ID: "inp_1", Transport: OMT, Direction: In, Address: "127.0.0.1:1"}}
	if err := w.work(t.Context()); !errors.Is(err, errForbidden) {
		t.Error(err)
	}
}

// A state that nobody has repeated is not shown as if it held.
func TestAStateOfAnEngineThatIsGone(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	v := Service{Available: true, Now: func() time.Time { return now }}
	fresh, old := now.Add(-silence), now.Add(-silence-time.Second)
	if got := v.view(Link{State: Running, SeenAt: &fresh}); got.State != Running || got.Message != nil {
		t.Errorf("%+v", got)
	}
	if got := v.view(Link{State: Running, SeenAt: &old}); got.State != Waiting || got.Message == nil {
		t.Errorf("%+v", got)
	}
}
