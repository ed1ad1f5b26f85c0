package resources

import (
	"regexp"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
)

func TestUpgradesAreOnWhereARouteAsks(t *testing.T) {
	t.Parallel()
	plain := compiled(t, config.Route{Path: "/a", Methods: []string{"POST"}})
	if a := plain[0].GetRoute(); len(plain) != 1 || a.UpgradeConfigs != nil || a.MaxStreamDuration != nil {
		t.Errorf("%v", plain)
	}
	list := compiled(t, config.Route{Path: "/a", Methods: []string{"POST", "GET"}, Upgrades: []string{config.WebSocket}, Timeout: "2m", Lifetime: "3h"})
	a := list[0].GetRoute()
	if len(a.UpgradeConfigs) != 1 || a.UpgradeConfigs[0].UpgradeType != "websocket" || a.Timeout.AsDuration() != 0 || a.IdleTimeout.AsDuration() != 2*time.Minute ||
		a.MaxStreamDuration.MaxStreamDuration.AsDuration() != 3*time.Hour {
		t.Errorf("%v", a)
	}
}

// Pages of other origins meet the same route, without upgrades.
func TestUpgradesAreForTheOriginsOfCORS(t *testing.T) {
	t.Parallel()
	r := config.Route{Path: "/a", Methods: []string{"POST"}, Upgrades: []string{config.WebSocket}}
	for _, open := range []*config.CORS{nil, {}, {Origins: []string{"*"}}} {
		r.CORS = open
		for _, out := range compiled(t, r) {
			if out.GetRoute().UpgradeConfigs == nil {
				t.Errorf("closed with %v: %v", open, out)
			}
		}
	}
	r.CORS = &config.CORS{Origins: []string{"https://app.example.com", "https://*.example.org"}}
	list := compiled(t, r)
	if len(list) != 2 || list[0].GetRoute().UpgradeConfigs == nil || list[1].GetRoute().UpgradeConfigs != nil || list[0].Name != list[1].Name {
		t.Fatalf("%v", list)
	}
	headers := list[0].Match.Headers
	origin := headers[len(headers)-1]
	expr := regexp.MustCompile(`^(?:` + origin.GetStringMatch().GetSafeRegex().Regex + `)$`)
	for text, want := range map[string]bool{"": true, "https://app.example.com": true, "https://a.example.org": true, "https://appxexample.com": false,
		"https://evil.test/https://app.example.com": false, "null": false} {
		if got := expr.MatchString(text); got != want || !origin.TreatMissingHeaderAsEmpty {
			t.Errorf("%q: %v", text, got)
		}
	}
	if len(list[1].Match.Headers) != len(headers)-1 {
		t.Errorf("the route for others asks for %v", list[1].Match.Headers)
	}
}
