package e2e

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// products is what tests look at in the registry.
type products struct {
	Schema   string `json:"$schema"`
	Links    map[string]string
	Health   map[string]string
	Products []listing
}

// listing is one product of the registry.
type listing struct {
	Name, Kind, State, Needs, Health string
	Prices                           []struct{ Route, Amount, Asset, Network string }
	Routes                           []struct {
		Methods []string
		URL     string
	}
}

// The registry follows its own schema, and says what is so: what needs an engine
// answers 501, and what is available does not.
func TestTheRegistryIsTrue(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	r := call(t, http.MethodGet, s.url("/.well-known/platform-products.json"), "", nil)
	wantStatus(t, r, 200)
	registry := into[products](t, r)
	schema := call(t, http.MethodGet, registry.Schema, "", nil)
	wantStatus(t, schema, 200)
	parsed := func(text string) any {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	fits(t, "the registry", parsed(schema.body), parsed(r.body))

	states := map[string]string{}
	for _, p := range registry.Products {
		states[p.Name] = p.State
		for _, route := range p.Routes {
			method := "POST"
			if len(route.Methods) > 0 {
				method = route.Methods[0]
			}
			if !strings.HasPrefix(route.URL, s.url("/v1/")) || strings.ContainsAny(route.URL, "{*") || method == "PUT" {
				continue
			}
			got := call(t, method, route.URL, s.dev["SLUICE_API_KEY"], nil)
			if (got.StatusCode == 501) != (p.State == "needs_engine") {
				t.Errorf("%s is %s: %s %s: %d %s", p.Name, p.State, method, route.URL, got.StatusCode, got.body)
			}
			if got.StatusCode == 501 {
				wantError(t, got, 501, "not_implemented")
			}
		}
	}
	for _, name := range strings.Fields("streams clips voice captions chapters analytics webhooks editor phone events srt rtmp webrtc hls dash ndi dante omt moq chat mcp") {
		if states[name] == "" || states[name] == "not_available" {
			t.Errorf("%s: %q", name, states[name])
		}
	}
	if registry.Health["media"] != "ok" || registry.Health["api"] == "failing" {
		t.Errorf("%v", registry.Health)
	}
	i := slices.IndexFunc(registry.Products, func(p listing) bool { return p.Name == "clips" })
	if prices := registry.Products[i].Prices; len(prices) != 1 || prices[0].Amount != "0.01" || prices[0].Network == "" {
		t.Errorf("%+v", prices)
	}
}

// Surfaces without an engine ask for a credential first, and unmapped routes stay
// unmapped.
func TestSurfacesWithoutAnEngine(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	key := s.dev["SLUICE_API_KEY"]
	for _, path := range []string{"/v1/phone", "/v1/dante", "/v1/ndi", "/v1/omt", "/v1/moq"} {
		wantError(t, call(t, http.MethodGet, s.url(path), key, nil), 501, "not_implemented")
		wantError(t, call(t, http.MethodGet, s.url(path), "", nil), 401, "authentication_required")
	}
	wantError(t, call(t, http.MethodGet, s.url("/v1/karaoke"), key, nil), 403, "ROUTE_NOT_MAPPED")
	wantError(t, call(t, http.MethodPost, s.url("/v1/streams"), key, map[string]any{"title": "x", "protocol": "ndi"}), 501, "not_implemented")
	wantError(t, call(t, http.MethodPost, s.url("/v1/streams"), key, map[string]any{"title": "x", "protocol": "smoke"}), 400, "invalid_request")
}

// Descriptions are for every page and every cache.
func TestDescriptionsThroughTheEdge(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	for _, path := range []string{"platform-products.json", "platform-products.schema.json", "mcp.json", "agent-card.json"} {
		at := s.url("/.well-known/" + path)
		r := call(t, http.MethodGet, at, "", nil, "Origin", "https://page.example")
		wantStatus(t, r, 200)
		wantHeaders(t, r)
		tag := r.Header.Get("ETag")
		if tag == "" || r.Header.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(r.Header.Get("Cache-Control"), "max-age") {
			t.Errorf("%s: %v", path, r.Header)
		}
		wantStatus(t, call(t, http.MethodGet, at, "", nil, "If-None-Match", tag), 304)
		r = call(t, http.MethodOptions, at, "", nil, "Origin", "https://page.example", "Access-Control-Request-Method", "GET")
		wantStatus(t, r, 204)
		if r.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("OPTIONS %s: %v", path, r.Header)
		}
		if all := call(t, http.MethodGet, at, s.dev["SLUICE_API_KEY"], nil); all.StatusCode != 200 {
			t.Errorf("%s with a credential: %d", path, all.StatusCode)
		}
	}
	manifest := into[struct{ Remotes []struct{ Type, URL string } }](t, call(t, http.MethodGet, s.url("/.well-known/mcp.json"), "", nil))
	if len(manifest.Remotes) != 1 || manifest.Remotes[0].URL != s.url("/mcp") {
		t.Errorf("%+v", manifest)
	}
}
