package sharedlimit

import (
	"testing"

	"sluice.dev/sluice/filters/limits/ratelimit"
)

// memory is a Store in which place n holds the window of account n.
type memory struct {
	hot     []Place
	windows map[Place]ratelimit.Window
	others  map[ratelimit.ID]ratelimit.Others
	places  map[ratelimit.ID]Place
	state   State
	shares  Shares
}

func (m *memory) Hot() []Place { h := m.hot; m.hot = nil; return h }
func (m *memory) Share(p Place, _ int64) (e Entry, ok bool) {
	if w := m.windows[p]; w != nil {
		return Entry{ID: w.ID(), Others: w.Share()}, true
	}
	return e, false
}
func (m *memory) SetOthers(id ratelimit.ID, o ratelimit.Others) Place {
	m.others[id] = o
	return m.places[id]
}
func (m *memory) SetShares(s Shares) { m.shares = s }
func (m *memory) SetFleet(s State)   { m.state = s }
func newMemory() *memory {
	return &memory{windows: map[Place]ratelimit.Window{}, others: map[ratelimit.ID]ratelimit.Others{}}
}
func place(n int) Place { return Place{'r', 0, byte(n >> 8), byte(n)} }
func (m *memory) find(n int, counted int, second int64) {
	w := ratelimit.New(ratelimit.AccountID(uint64(n), 0))
	for range counted {
		w.Take(ratelimit.Limit{PerMinute: 1 << 20}, second)
	}
	m.windows[place(n)], m.hot = w, append(m.hot, place(n))
}

const millis = 1_800_000_000_000

func TestWhatIsReported(t *testing.T) {
	t.Parallel()
	m, e := newMemory(), &Edge{Boot: 4}
	if r := e.Report(m, millis); len(r.Entries) != 0 || r.Boot != 4 || r.Told != millis {
		t.Fatalf("%+v", r)
	}
	m.find(1, 7, millis/1000)
	for _, at := range []int64{millis, millis + 100, millis + 59_999} { // hot until it has not been for a minute
		r := e.Report(m, at)
		if len(r.Entries) != 1 || r.Entries[0].At(millis/1000) != 7 {
			t.Fatalf("%d ms later: %+v", at-millis, r)
		}
	}
	if r := e.Report(m, millis+60_000); len(r.Entries) != 0 {
		t.Fatalf("%+v", r)
	}
}

func TestAReportIsBounded(t *testing.T) {
	t.Parallel()
	m, e := newMemory(), &Edge{}
	for n := range MaxEntries + 10 {
		m.find(n, 1, millis/1000)
	}
	r := e.Report(m, millis)
	if _, ok := ParseReport(r.Append(nil)); !ok || len(r.Entries) != MaxEntries {
		t.Fatalf("%d entries", len(r.Entries))
	}
}

func TestThePaceOfTheOthers(t *testing.T) {
	t.Parallel()
	m, e := newMemory(), &Edge{}
	id := ratelimit.AccountID(1, 0)
	for i, want := range []uint32{0, 50_000, 75_000, 87_500} { // towards 100 a second, which is 100,000 in 1000 s
		at := int64(millis + i*100)
		e.ApplyAnswer(m, Answer{Edges: 2, Entries: []Entry{entry(1, millis/1000, uint32(10*(i+1)))}}, at-5, at)
		if got := m.others[id]; got.Pace != want || got.Millis != uint32(at) {
			t.Fatalf("answer %d: %+v, want a pace of %d", i, got, want)
		}
	}
	e.ApplyAnswer(m, Answer{Edges: 2, Entries: []Entry{entry(1, millis/1000, 900)}}, millis+4995, millis+5000)
	if got := m.others[id].Pace; got != 0 {
		t.Fatalf("after a silence: %d", got)
	}
}

// An edge that starts while nobody answers is not alone if its agent remembers
// others; what it hears itself counts for more.
func TestWhatIsRemembered(t *testing.T) {
	t.Parallel()
	m, e := newMemory(), &Edge{}
	if e.SetKnownEdges(m, 0); m.state != (State{}) {
		t.Fatalf("nothing is remembered: %+v", m.state)
	}
	if e.SetKnownEdges(m, 3); !m.state.Fleet(millis).Cut || m.state.Edges != 3 {
		t.Fatalf("%+v", m.state)
	}
	e.ApplyAnswer(m, Answer{Edges: 2}, millis-5, millis)
	if e.SetKnownEdges(m, 3); m.state != (State{Edges: 2, Heard: millis}) {
		t.Fatalf("%+v", m.state)
	}
}

func TestWhoIsCutOff(t *testing.T) {
	t.Parallel()
	limit := ratelimit.Limit{PerMinute: 90, Burst: 30}
	for _, c := range []struct {
		state State
		want  ratelimit.Limit
	}{
		{State{}, limit},
		{State{Edges: 3, Heard: millis - 2000}, limit},
		{State{Edges: 3, Heard: millis - 2001}, ratelimit.Limit{PerMinute: 30, Burst: 10}},
		{State{Edges: 1, Heard: millis - 99_999}, limit},
		{State{Edges: 1000, Heard: 0}, ratelimit.Limit{PerMinute: 1}},
	} {
		if got := c.state.Fleet(millis).Among(limit); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.state, got, c.want)
		}
	}
}
