package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	d := small()
	d.AccessLog, d.TrustedProxies = "all", 1
	d.Issuers = []Issuer{{Issuer: "https://id.example", JWKSURI: "https://id.example/keys"}}
	d.Scopes = []string{"streams:read", "streams:write"}
	d.Plans = nil
	d.Products[0].Upstreams = []Upstream{{Address: "10.0.0.2:80"}}
	d.Routes = []Route{d.Routes[1], d.Routes[0]} // the order does not count
	d.Routes[1].Scope, d.Routes[1].Class = "", "default"
	var got []string
	for _, c := range Diff(small(), d) {
		got = append(got, fmt.Sprintf("%s %s %s -> %s", c.Kind, c.Path, c.From, c.To))
	}
	want := []string{
		`added issuers.https://id.example  -> {"audience":"","issuer":"https://id.example","jwks_uri":"https://id.example/keys"}`,
		`removed plans.free {"limits":{"default":{"per_minute":10,"burst":5}}} -> `,
		`changed products.media.upstreams [{"address":"10.0.0.1:80"}] -> [{"address":"10.0.0.2:80"}]`,
		`added routes.streams.get.class  -> "default"`,
		`removed routes.streams.get.scope "streams:read" -> `,
		`added scopes.streams:write  -> `,
		`changed settings.access_log "" -> "all"`,
		`changed settings.trusted_proxies 0 -> 1`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if c := Diff(d, d); len(c) != 0 {
		t.Errorf("a document differs from itself: %v", c)
	}
}

func TestDiffShowsThatTheDefaultClassIsAnother(t *testing.T) {
	t.Parallel()
	a := small()
	a.Classes = append(a.Classes, Class{Name: "events", PerMinute: 5})
	b := small()
	b.Classes = []Class{a.Classes[1], a.Classes[0]}
	c := Diff(a, b)
	if len(c) != 1 || c[0].Path != "settings.default_class" {
		t.Errorf("%+v", c)
	}
}
