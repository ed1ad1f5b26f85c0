package config

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/deploy"
	"sluice.dev/sluice/filters/decision"
)

// expanded reads and expands a text for a profile.
func expanded(t *testing.T, text, profile string) (Document, []decision.Detail) {
	t.Helper()
	d, _, err := ParseYAML([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d.Expand(profile)
}

const short = `
products: [{name: shop, upstream: "http://10.0.0.1:3000"}]
routes:
  - {name: shop, path: /*, product: shop, scope: "shop:use"}
  - {name: open, path: /open, product: shop, auth: [none]}
  - {name: nobody, path: /nobody, product: shop, auth: []}
`

// What a document leaves out is said in what is stored: nobody gets in without a
// key by leaving something out.
func TestDefaults(t *testing.T) {
	t.Parallel()
	d, faults := expanded(t, short, "")
	if faults != nil {
		t.Fatal(faults)
	}
	if !slices.Equal(d.Classes, []Class{{Name: "default", PerMinute: 600}}) || len(d.Plans) != 1 || d.Plans[0].Name != "free" || d.Plans[0].Limits != nil || !slices.Equal(d.Scopes, []string{"shop:use"}) {
		t.Errorf("%+v", d)
	}
	if !slices.Equal(d.Routes[0].Auth, []string{"key"}) || !slices.Equal(d.Routes[1].Auth, []string{"none"}) || len(d.Routes[2].Auth) != 0 {
		t.Errorf("%+v", d.Routes)
	}
	if got := fieldsAtFault(t, d.Validate()); !slices.Equal(got, []string{"routes[2].auth"}) {
		t.Errorf("a list that is empty is not one that is absent: %q", got)
	}
	again, _ := d.Expand("")
	if a, b := text(fields(d)), text(fields(again)); string(a) != string(b) {
		t.Errorf("what is complete changes:\n%s\n%s", a, b)
	}
	js, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := ParseJSON(js)
	if err != nil || !same(stored, d) || len(Diff(stored, d)) > 0 {
		t.Errorf("%v: what is stored is not what was published", err)
	}
}

// What is said stays as it is.
func TestDefaultsReplaceNothing(t *testing.T) {
	t.Parallel()
	d, faults := expanded(t, `
classes: [{name: bulk, per_minute: 5}]
plans: []
scopes: []
products: [{name: shop, upstream: "https://shop.example", host: other.example, tls: {server_name: inner.example}}]
routes: []
`, "")
	if faults != nil || len(d.Classes) != 1 || d.Classes[0].Name != "bulk" || len(d.Plans) != 0 || len(d.Scopes) != 0 {
		t.Errorf("%+v %v", d, faults)
	}
	if p := d.Products[0]; p.Host != "other.example" || p.TLS.ServerName != "inner.example" || p.Upstreams[0].Address != "shop.example:443" {
		t.Errorf("%+v", p)
	}
}

func TestUpstream(t *testing.T) {
	t.Parallel()
	for upstream, want := range map[string]string{
		"http://10.0.0.1:3000": "10.0.0.1:3000 10.0.0.1:3000 ", "http://shop": "shop:80 shop ", "https://shop.example/": "shop.example:443 shop.example shop.example",
		"https://shop.example:8443": "shop.example:8443 shop.example:8443 shop.example", "http://[::1]:80": "[::1]:80 [::1]:80 ",
		"shop:80": "", "ftp://shop": "", "http://": "", "http://shop/path": "", "http://shop?q": "", "http://user@shop": "", "http://shop:0": "", "https://10.0.0.1": "", "${api}": "",
	} {
		p := Product{Name: "shop", Upstream: upstream}.complete()
		got := ""
		if p.Upstream == "" {
			got = p.Upstreams[0].Address + " " + p.Host + " "
			if p.TLS != nil {
				got += p.TLS.ServerName
			}
		}
		if got != want || ValidUpstream(upstream) != (want != "") {
			t.Errorf("%s: %q", upstream, got)
		}
		v := &validator{}
		v.products([]Product{p})
		if (len(v.details) == 0) != (want != "") {
			t.Errorf("%s: %v", upstream, v.details)
		}
	}
	both := Product{Name: "a", Upstream: "http://a", Upstreams: []Upstream{{Address: "b:1"}}}.complete()
	v := &validator{}
	if v.products([]Product{both}); len(v.details) != 1 || v.details[0].Field != "products[0].upstream" {
		t.Errorf("%v", v.details)
	}
}

// The platform's own routes come below a document's, whose objects keep their
// places; what is included is valid by itself with each profile.
func TestBuiltin(t *testing.T) {
	t.Parallel()
	for _, profile := range Profiles {
		own, err := DefaultOf(profile)
		if err != nil || own.Validate() != nil {
			t.Fatal(profile, err, own.Validate())
		}
		d, faults := expanded(t, strings.Replace(short, "auth: []", "auth: [key]", 1)+"include: [builtin]\nplans: [{name: free, limits: {default: {per_minute: 7}}}]\n", profile)
		if err := d.Validate(); err != nil || faults != nil {
			t.Fatal(profile, err, faults)
		}
		if d.Products[0].Name != "shop" || d.Routes[0].Name != "shop" || len(d.Routes) != len(own.Routes)+3 || len(d.Products) != len(own.Products)+1 || d.Include != nil {
			t.Errorf("%s: %d routes", profile, len(d.Routes))
		}
		if d.Plans[0].Name != "free" || d.Plans[0].Limits["default"].PerMinute != 7 || len(d.Plans) != len(own.Plans) {
			t.Errorf("%s: %+v", profile, d.Plans)
		}
		if d.Classes[0].Name != "default" || d.Classes[0].PerMinute != DefaultPerMinute {
			t.Errorf("%s: %+v", profile, d.Classes)
		}
	}
}

// Routes that are built in keep their class when a document's first is another.
func TestBuiltinRoutesKeepTheirClass(t *testing.T) {
	t.Parallel()
	for profile, want := range map[string]string{ProfilePlatform: "default", ProfileGateway: "sluice"} {
		d, _ := expanded(t, "include: [builtin]\nclasses: [{name: slow, per_minute: 1}]", profile)
		if err := d.Validate(); err != nil {
			t.Fatal(err)
		}
		for _, r := range d.Routes {
			if r.Class == "" || r.Class == "slow" {
				t.Errorf("%s: %s has class %q, want %s", profile, r.Name, r.Class, want)
			}
		}
	}
}

// Nobody takes the place of what is built in by mistake; who means to removes it.
func TestConflictsWithBuiltin(t *testing.T) {
	t.Parallel()
	for text, fields := range map[string]string{
		"include: [nothing]":                                                                                "include[0]",
		"include: [../other.yaml]":                                                                          "include[0]",
		"include: [builtin/none]":                                                                           "include[0]",
		"include: [builtin, builtin/gateway]":                                                               "include[1]",
		"include: [builtin]\nremove: [routes.none]":                                                         "remove[0]",
		"include: [builtin]\nremove: [products.*]":                                                          "remove[0]",
		"remove: [routes.health]":                                                                           "remove[0]",
		"include: [builtin]\nremove: [routes.sluice.docs*]":                                                 "",
		"include: [builtin]\nproducts: [{name: runtime, upstream: 'http://a'}]":                             "products[0].name",
		"include: [builtin]\nproducts: [{name: sluice, upstream: 'http://a'}]":                              "products[0].name",
		"include: [builtin]\nroutes: [{name: sluice.docs, path: /a, respond: {status: 200}}]":               "routes[0].name",
		"include: [builtin]\nroutes: [{name: mine, path: /docs/*, methods: [GET], respond: {status: 200}}]": "routes[0].path",
		"include: [builtin]\nremove: [routes.sluice.docs]\nroutes: [{name: sluice.docs, path: /docs/*, methods: [GET], respond: {status: 200}}]": "",
		"include: [builtin]\nroutes: [{name: all, path: /*, respond: {status: 200}}]":                                                            "",
	} {
		d, faults := expanded(t, text, ProfileGateway)
		var got []string
		for _, f := range faults {
			got = append(got, f.Field)
		}
		if strings.Join(got, " ") != fields {
			t.Errorf("%s: %v", text, faults)
		}
		if err := d.Validate(); err != nil {
			t.Errorf("%s: what is left: %v", text, err)
		}
	}
}

// One mistyped name does not hide what else is wrong.
func TestAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	d, err := ParseJSON([]byte(`{"routes":[{"name":"a","path":"a","timeuot":"1s","product":"b"},{"name":"c","path":5}],"access_log":"some","clases":[]}`))
	d, more := d.Expand("")
	got := fieldsAtFault(t, AllFaults(faults(err), more, d))
	slices.Sort(got)
	if strings.Join(got, " ") != "access_log clases routes[0].path routes[0].product routes[0].timeuot routes[1].path routes[1].product" {
		t.Errorf("%q", got)
	}
}

// A platform that nobody has configured says what its document says, and no version
// more with this release.
func TestDefaultIsTheDocument(t *testing.T) {
	t.Parallel()
	said, _, err := ParseYAML(deploy.Document)
	if err != nil {
		t.Fatal(err)
	}
	if d, err := Default(); err != nil || !same(said, d) {
		t.Errorf("%v %v", err, Diff(said, d))
	}
}

// Who alters what was read alters nobody else's.
func TestDefaultsAreOnesOwn(t *testing.T) {
	t.Parallel()
	a, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	a.Products[0].Upstreams[0].Address, a.Routes[0].Auth[0] = "altered:1", "altered"
	if b, err := Default(); err != nil || b.Products[0].Upstreams[0].Address == "altered:1" || b.Routes[0].Auth[0] == "altered" {
		t.Errorf("%v %+v", err, b.Products[0])
	}
}
