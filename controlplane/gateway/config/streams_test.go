package config

import (
	"slices"
	"testing"

	"sluice.dev/sluice/filters/policy"
)

func TestWhatStandsBesideUpgrades(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Document)
		want   []string
	}{
		"a good one":         {func(d *Document) { d.Routes[0].Upgrades, d.Routes[0].Lifetime = []string{WebSocket}, "12h" }, nil},
		"a streaming route":  {func(d *Document) { d.Routes[0].Streaming, d.Routes[0].Lifetime = true, "12h" }, nil},
		"another protocol":   {func(d *Document) { d.Routes[0].Upgrades = []string{"h2c"} }, []string{"routes[0].upgrades[0]"}},
		"twice":              {func(d *Document) { d.Routes[0].Upgrades = []string{WebSocket, WebSocket} }, []string{"routes[0].upgrades"}},
		"no GET":             {func(d *Document) { d.Routes[0].Upgrades, d.Routes[0].Methods = []string{WebSocket}, []string{"POST"} }, []string{"routes[0].methods"}},
		"an answer":          {func(d *Document) { d.Routes[1].Upgrades = []string{WebSocket} }, []string{"routes[1].respond"}},
		"a limit of a body":  {func(d *Document) { d.Routes[0].Upgrades, d.Routes[0].BodyLimit = []string{WebSocket}, 10 }, []string{"routes[0].body_limit"}},
		"a lifetime of none": {func(d *Document) { d.Routes[0].Lifetime = "1h" }, []string{"routes[0].lifetime"}},
		"too long a life":    {func(d *Document) { d.Routes[0].Streaming, d.Routes[0].Lifetime = true, "25h" }, []string{"routes[0].lifetime"}},
		"too many": {func(d *Document) {
			d.Classes[0].Connections, d.Plans[0].Limits["default"] = 1<<31, Limit{PerMinute: 1, ConnectionsPerKey: 1 << 31}
		}, []string{"classes[0].connections", "plans[0].limits.default.connections_per_key"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := small()
			c.change(&d)
			if got := fieldsAtFault(t, d.Validate()); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// Streams are watched where somebody limits them, and WebSockets always.
func TestWhichStreamsAreWatched(t *testing.T) {
	t.Parallel()
	d := small()
	d.Routes = append(d.Routes, Route{Name: "events", Path: "/events", Product: "media", Auth: []string{"key"}, Streaming: true})
	n := Numbers{Scopes: map[string]int{"*": 0, "streams:*": 1, "streams:read": 2}, Plans: map[string]uint16{"free": 1}}
	compile := func() *policy.Policy {
		t.Helper()
		p, err := d.Policy(1, "http://gw", n)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := compile(); p.Routes[0].Stream != policy.Unwatched || p.Routes[2].Stream != policy.Unwatched {
		t.Error("watched without need")
	}
	d.Routes[0].Upgrades = []string{WebSocket}
	before := compile()
	if before.Routes[0].Stream != policy.Upgrades || before.Routes[0].BodyLimit != 0 || before.Routes[2].Stream != policy.Unwatched {
		t.Errorf("%+v", before.Routes)
	}
	d.Classes[0].Connections = 5
	d.Plans[0].Limits["default"] = Limit{PerMinute: 10, ConnectionsPerKey: 2}
	if p := compile(); p.Routes[2].Stream != policy.Watched || p.Plans[0].Limits[0] != (policy.Limit{PerMinute: 10, Connections: 5, ConnectionsPerKey: 2}) {
		t.Errorf("%+v %+v", p.Routes, p.Plans)
	}
}
