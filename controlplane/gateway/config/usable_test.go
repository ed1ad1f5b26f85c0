package config

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// routeNamed is the route of d with a name, as text; "" when it is gone.
func routeNamed(d Document, name string) string {
	i := slices.IndexFunc(d.Routes, func(r Route) bool { return r.Name == name })
	if i < 0 {
		return "gone"
	}
	if r := d.Routes[i]; r.Respond != nil && r.Respond.Status == 503 && slices.Equal(r.Auth, []string{"none"}) && r.Product == "" {
		return "closed"
	}
	return "open"
}

func TestWhatIsServedOfAFaultyDocument(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		spoil func(*Document)
		// what becomes of the route streams.get; health stays open.
		route string
	}{
		"nothing is wrong":             {func(*Document) {}, "open"},
		"a timeout":                    {func(d *Document) { d.Routes[0].Timeout = "soon" }, "closed"},
		"a scope that is gone":         {func(d *Document) { d.Scopes = nil }, "closed"},
		"a scope that is none":         {func(d *Document) { d.Scopes[0], d.Routes[0].Scope = "streams", "streams" }, "closed"},
		"a product that is gone":       {func(d *Document) { d.Products = nil }, "closed"},
		"a product without an address": {func(d *Document) { d.Products[0].Upstreams = nil }, "open"},
		"a product with a bad name":    {func(d *Document) { d.Products[0].Name, d.Routes[0].Product = "Media", "Media" }, "closed"},
		"a price nobody gets":          {func(d *Document) { d.Routes[0].Price = "0.01" }, "closed"},
		"payments to nobody":           {func(d *Document) { d.X402, d.Routes[0].Price = &X402{Network: "moon"}, "0.01" }, "closed"},
		"a path":                       {func(d *Document) { d.Routes[0].Path = "v1" }, "gone"},
		"a host":                       {func(d *Document) { d.Routes[0].Hosts = []string{"A B"} }, "gone"},
		"a header":                     {func(d *Document) { d.Routes[0].Headers = []HeaderMatch{{Name: "x y"}} }, "gone"},
		"a second route for the same": {func(d *Document) {
			r := d.Routes[0]
			r.Name = "again"
			d.Routes = append(d.Routes, r)
		}, "open"},
		"a class": {func(d *Document) {
			d.Classes = append(d.Classes, Class{Name: "bulk"})
			d.Routes[0].Class = "bulk"
			d.Plans[0].Limits["bulk"] = Limit{PerMinute: 1}
		}, "closed"},
		"a plan":       {func(d *Document) { d.Plans[0].Limits["default"] = Limit{} }, "open"},
		"a plan's use": {func(d *Document) { d.Plans[0].Products = []string{"nothing"} }, "open"},
		"a log":        {func(d *Document) { d.AccessLog = "some" }, "open"},
		"numbers":      {func(d *Document) { d.AnonymousPerMinute, d.TrustedProxies = 1<<31, 99 }, "open"},
		"an issuer":    {func(d *Document) { d.Issuers = []Issuer{{Issuer: "x"}} }, "open"},
	} {
		d := small()
		c.spoil(&d)
		before, _ := json.Marshal(d)
		usable, faults, ok := d.Usable()
		if after, _ := json.Marshal(d); string(before) != string(after) {
			t.Errorf("%s: the document itself was changed", what)
		}
		if !ok || (len(faults) == 0) != (what == "nothing is wrong") {
			t.Errorf("%s: %v, faults %v", what, ok, faults)
		}
		if got := fmt.Sprint(routeNamed(usable, "streams.get"), " ", routeNamed(usable, "health")); got != c.route+" open" {
			t.Errorf("%s: the routes are %s, want %s open", what, got, c.route)
		}
		if _, err := usable.Policy(0, "", ProvisionalNumbers(usable)); err != nil {
			t.Errorf("%s: what is left does not compile: %v", what, err)
		}
	}
}

func TestNothingIsServedWithoutAClass(t *testing.T) {
	t.Parallel()
	d := small()
	d.Classes = nil
	if _, faults, ok := d.Usable(); ok || len(faults) == 0 {
		t.Errorf("%v", faults)
	}
}

// A version that was stored under other rules can be edited: the object at fault
// stays as it is and is named, until it is mended.
func TestAnOldFaultHoldsUpNoOtherObject(t *testing.T) {
	t.Parallel()
	h, s := admin(t)
	d := small()
	d.Routes[0].Timeout = "soon"
	d.Products = append(d.Products, Product{Name: "old", Upstreams: []Upstream{{Address: "nowhere"}}})
	v := putDoc(t, s, d, "an older release", Any)
	var read struct{ Warnings []decision.Detail }
	if w := call(t, h, "GET", "/config", "", nil, &read); w.Code != http.StatusOK || len(read.Warnings) != 2 {
		t.Fatalf("%d %+v", w.Code, read)
	}
	var res PutResult
	if w := call(t, h, "PUT", "/routes/new?dry_run=true", "", Route{Path: "/new", Product: "media", Auth: []string{"key"}}, &res); w.Code != http.StatusOK || len(res.Warnings) != 2 {
		t.Errorf("another object: %d %+v", w.Code, res)
	}
	if w := call(t, h, "PUT", "/routes/new", "", Route{Path: "/new", Product: "media", Auth: []string{"key"}}, nil); w.Code != http.StatusCreated {
		t.Errorf("another object: %d %s", w.Code, w.Body)
	}
	if w := call(t, h, "PUT", "/routes/streams.get", "", Route{Path: "/other", Product: "media", Auth: []string{"key"}, Timeout: "soon"}, nil); w.Code != http.StatusBadRequest {
		t.Errorf("the same fault in a changed object: %d %s", w.Code, w.Body)
	}
	if w := call(t, h, "DELETE", "/products/media", "", nil, nil); w.Code != http.StatusBadRequest {
		t.Errorf("a new fault of an object that stays as it is: %d %s", w.Code, w.Body)
	}
	if w := call(t, h, "DELETE", "/products/old", "", nil, nil); w.Code != http.StatusNoContent {
		t.Errorf("the object at fault goes: %d %s", w.Code, w.Body)
	}
	now, err := s.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if w := call(t, h, "PUT", "/config", "", now.Document, &res); w.Code != http.StatusOK || len(res.Warnings) != 1 || res.Warnings[0].Field != "routes[0].timeout" {
		t.Errorf("the document as it is: %d %+v", w.Code, res)
	}
	now.Document.Routes[0].Timeout = "1s"
	if w := call(t, h, "PUT", "/config", "", now.Document, &res); w.Code != http.StatusOK || len(res.Warnings) != 1 {
		t.Logf("mended: %d %+v", w.Code, res)
	}
	if v.Number == 0 {
		t.Error("nothing was stored")
	}
}

// Names that a newer release has no numbers for do not keep a version from being stored.
func TestFaultyNamesGetNoNumbers(t *testing.T) {
	t.Parallel()
	_, s := admin(t)
	d := small()
	d.Scopes = append(d.Scopes, "no scope")
	d.Plans = append(d.Plans, Plan{Name: "No Plan", Tokens: &TokenBudget{Daily: 1}})
	if _, err := s.Put(t.Context(), d, "a", "", Any); apierror.Code(err) != "" {
		t.Error(err)
	}
}
