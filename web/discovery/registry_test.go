package discovery

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sluice.dev/sluice/controlplane/gateway/config"
)

var at = Addresses{Gateway: "https://gw.example", Runtime: "https://chat.example"}

// version is the default configuration, with more routes.
func version(t testing.TB, more ...config.Route) config.Version {
	t.Helper()
	d, err := config.Default()
	if err != nil {
		t.Fatal(err)
	}
	d.Routes = append(d.Routes, more...)
	return config.Version{Number: 7, Document: d, CreatedAt: time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC)}
}

// engines is a media product with some engines.
func engines(there ...string) map[string]Report {
	said := map[string]string{}
	for _, name := range []string{"rtmp", "srt", "webrtc", "hls", "voice", "captions", "transcribe", "vision", "render", "transcode", "mux", "editor", "phone", "dash", "moq", "dante", "ndi", "omt"} {
		said[name] = NeedsEngine
		if slices.Contains(there, name) {
			said[name] = Available
		}
	}
	doing := map[string]Engine{"transcribe": {Use: "builtin", Health: OK, Version: "own 1.0"}, "vision": {Health: Unknown}}
	return map[string]Report{"media": {OK, said, doing}, "api": {Status: OK}, "runtime": {Status: OK}}
}

func byName(r Registry) map[string]Product {
	by := map[string]Product{}
	for _, p := range r.Products {
		by[p.Name] = p
	}
	return by
}

// The registry is what its schema says.
func TestTheRegistryFollowsItsSchema(t *testing.T) {
	t.Parallel()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(registrySchema))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("registry", schema); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("registry")
	if err != nil {
		t.Fatal(err)
	}
	empty := config.Version{Number: 1, Document: config.Document{Classes: []config.Class{{Name: "c", PerMinute: 1}}}}
	for name, v := range map[string]config.Version{"the default": version(t), "nothing": empty} {
		text, err := json.Marshal(Build(v, at, engines("rtmp")))
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiled.Validate(value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every surface and protocol edge of contract 1.7 is there, in its state.
func TestStates(t *testing.T) {
	t.Parallel()
	by := byName(Build(version(t), at, engines("rtmp", "hls", "dash")))
	for name, want := range map[string]string{
		"streams": Available, "clips": Available, "analytics": Available, "webhooks": Available, "events": Available,
		"recordings": Available, "vod": Available, "ingest": Available, "migration": Available, "keys": Available, "chat": Available, "mcp": Available,
		"voice": NeedsEngine, "captions": NeedsEngine, "chapters": Available, "editor": NeedsEngine, "phone": NeedsEngine,
		"rtmp": Available, "hls": Available, "srt": NeedsEngine, "webrtc": NeedsEngine, "dash": Available,
		"ndi": NeedsEngine, "dante": NeedsEngine, "omt": NeedsEngine, "moq": NeedsEngine,
	} {
		p := by[name]
		if p.State != want || (p.Needs != "") != (want == NeedsEngine) {
			t.Errorf("%s: %q, needs %q; want %s", name, p.State, p.Needs, want)
		}
	}
	if by["srt"].Kind != KindProtocol || by["streams"].Kind != KindProduct || !slices.Equal(by["srt"].Backends, []string{"media"}) {
		t.Errorf("%+v", by["srt"])
	}
}

// What a backend says of its engines is shown beside their surfaces, in known words.
func TestEnginesAreListed(t *testing.T) {
	t.Parallel()
	by := byName(Build(version(t), at, engines("transcribe")))
	if e := by["transcribe"].Engine; e == nil || *e != (Engine{"builtin", OK, "own 1.0"}) || by["voice"].Engine != nil || by["vision"].Engine == nil {
		t.Errorf("%+v, %+v, %+v", e, by["voice"].Engine, by["vision"].Engine)
	}
	said := read(strings.NewReader(`{"engines": {"a": {"use": "url", "health": "ok", "version": "` + strings.Repeat("v", 500) + `"}, "b": {"use": "magic", "health": "ok"}, "c": {"use": "url", "health": "fine"}}}`))
	if len(said.Engines) != 1 || len(said.Engines["a"].Version) > maxVersion {
		t.Errorf("%+v", said.Engines)
	}
}

// A surface is what the configuration makes of it, whoever serves it.
func TestStatesFollowTheConfiguration(t *testing.T) {
	t.Parallel()
	v := version(t, config.Route{Name: "karaoke", Path: "/v1/karaoke/{id}", Product: "api", Auth: []string{"key"}},
		config.Route{Name: "odd", Path: "/{any}", Product: "api", Auth: []string{"none"}})
	d := &v.Document
	for i, r := range d.Routes {
		switch r.Name {
		case "phone.about", "phone.read", "phone.write":
			d.Routes[i].Product = "api"
		case "omt.about", "omt.read", "omt.write":
			d.Routes[i].Path, d.Routes[i].Product = "/v1/elsewhere", "placeholder"
		}
	}
	by := byName(Build(v, at, map[string]Report{"media": {Status: Failing}, "api": {Status: OK}}))
	for name, want := range map[string]string{"karaoke": Available, "odd": Available, "phone": Available, "omt": NotAvailable, "elsewhere": NeedsEngine, "rtmp": NeedsEngine, "voice": Available} {
		if by[name].State != want {
			t.Errorf("%s: %s, want %s", name, by[name].State, want)
		}
	}
	for name, want := range map[string]string{"streams": "failing", "phone": "ok", "omt": "unknown", "chat": "unknown"} {
		if by[name].Health != want {
			t.Errorf("%s: %s, want %s", name, by[name].Health, want)
		}
	}
	if got := by["karaoke"].Routes; len(got) != 1 || got[0].URL != "https://gw.example/v1/karaoke/{id}" {
		t.Errorf("%+v", got)
	}
}

// What is asked of callers, and for how much, comes from the routes.
func TestRoutesScopesAndPrices(t *testing.T) {
	t.Parallel()
	r := Build(version(t), at, nil)
	clips := byName(r)["clips"]
	if !slices.Contains(clips.Scopes, "clips:write") || !slices.Equal(clips.Auth, []string{"key", "token", "x402"}) && !slices.Contains(clips.Auth, "x402") {
		t.Errorf("%+v", clips)
	}
	if want := []ProductPrice{{"clips.create", "0.01", "USDC", "base-sepolia"}}; !slices.Equal(clips.Prices, want) {
		t.Errorf("%+v", clips.Prices)
	}
	i := slices.IndexFunc(clips.Routes, func(r ProductRoute) bool { return r.Name == "clips.create" })
	if got := clips.Routes[i]; got.Price != "0.01" || got.Scope != "clips:write" || got.Class != "default" || got.URL != "https://gw.example/v1/clips" {
		t.Errorf("%+v", got)
	}
	if chat := byName(r)["chat"]; chat.Routes[0].URL[:20] != "https://chat.example" {
		t.Errorf("%+v", chat.Routes)
	}
	if r.Version != 7 || len(r.Plans) == 0 || len(r.Scopes) == 0 || r.Links.MCP != "https://gw.example/mcp" {
		t.Errorf("%+v", r.Links)
	}
}

// Without products of the platform's, the registry has what the configuration has.
func TestRegistryOfAGatewayAlone(t *testing.T) {
	t.Parallel()
	d, faults := config.Document{Include: []string{config.Builtin}, Products: []config.Product{{Name: "shop", Upstream: "http://10.0.0.1:1"}},
		Routes: []config.Route{{Name: "shop", Path: "/shop/*", Product: "shop"}}}.Expand(config.ProfileGateway)
	if faults != nil {
		t.Fatal(faults)
	}
	r := Build(config.Version{Number: 1, Document: d}, at, nil)
	r.onlyConfigured()
	var names []string
	for _, p := range r.Products {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"account", "billing", "keys", "mcp", "oauth", "requests", "shop", "users", "webhooks"}) || r.Links.X402 != "" || slices.ContainsFunc(r.Auth, func(m AuthMethod) bool { return m.Name == "x402" }) {
		t.Errorf("%q %+v", names, r.Links)
	}
	if c := NewCard(r, "1"); strings.Contains(c.Description, "media") {
		t.Error(c.Description)
	}
}
