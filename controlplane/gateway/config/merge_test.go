package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// layers makes texts: files of one layer are separated by "---", and named a, b, c….
func layers(all ...string) (out [][]Text) {
	n := 0
	for _, layer := range all {
		var texts []Text
		for part := range strings.SplitSeq(layer, "---\n") {
			texts = append(texts, Text{Name: string(rune('a'+n)) + ".yaml", YAML: []byte(part)})
			n++
		}
		out = append(out, texts)
	}
	return out
}

// merged are layers as one document, and "PLACE: FIELD ISSUE" of its faults.
func merged(t *testing.T, all ...string) (Document, []string) {
	t.Helper()
	d, src, err := Merge(layers(all...))
	var out []string
	if e, ok := errors.AsType[*apierror.Error](err); ok {
		for _, f := range e.Details {
			out = append(out, fmt.Sprintf("%s: %s %s", src.Place(f.Field), f.Field, f.Issue))
		}
	} else if err != nil {
		t.Fatal(err)
	}
	return d, out
}

// Files of one layer are joined in their order.
func TestFilesAreJoined(t *testing.T) {
	t.Parallel()
	d, faults := merged(t, "access_log: all\nproducts: [{name: one, upstream: 'http://a'}]\nscopes: [a:b]\n---\nroutes:\n- {name: r, path: /r, product: one}\n---\nproducts: [{name: two, upstream: 'http://b'}]\nscopes: [c:d]\n")
	if faults != nil || len(d.Products) != 2 || d.Products[1].Name != "two" || len(d.Routes) != 1 || !slices.Equal(d.Scopes, []string{"a:b", "c:d"}) || d.AccessLog != "all" || d.Classes != nil {
		t.Errorf("%v %+v", faults, d)
	}
}

// What is said twice in one layer names both places.
func TestDuplicatesNameBothPlaces(t *testing.T) {
	t.Parallel()
	_, faults := merged(t, "access_log: all\nroutes:\n- {name: r, path: /r}\nscopes: [a:b]\n---\naccess_log: off\nroutes:\n\n- {name: q, path: /q}\n- {name: r, path: /s}\nscopes: [a:b]\n")
	want := []string{
		"b.yaml:1: access_log is said twice: also a.yaml:1",
		"b.yaml:5: routes[2].name is given twice: also a.yaml:3",
		"b.yaml:6: scopes[1] is given twice: also a.yaml:4",
	}
	slices.Sort(faults)
	if !slices.Equal(faults, want) {
		t.Errorf("%q", faults)
	}
}

// A later layer changes named objects, field by field, and says nothing else anew.
func TestOverlays(t *testing.T) {
	t.Parallel()
	d, faults := merged(t, `
access_log: all
classes: [{name: default, per_minute: 60, burst: 5}]
products:
- {name: shop, upstreams: [{address: "dev:1"}, {address: "dev:2"}], health: {path: /h, interval: 1s}}
routes:
- {name: one, path: /one, product: shop, timeout: 1s, methods: [GET]}
- {name: two, path: /two, product: shop}
- {name: three, path: /three, product: shop}
x402: {network: base, pay_to: a}
`, `
access_log: "off"
classes: [{name: default, per_minute: 6000}, {name: bulk, per_minute: 9}]
products:
- {name: shop, upstreams: [{address: "prod:1"}], health: {interval: 9s}}
routes:
- {name: one, timeout: null, methods: [POST, PUT]}
remove: [routes.two, routes.th*, routes.sluice.docs]
x402: {pay_to: b}
`)
	if faults != nil {
		t.Fatal(faults)
	}
	if d.AccessLog != "off" || d.Classes[0] != (Class{Name: "default", PerMinute: 6000, Burst: 5}) || len(d.Classes) != 2 || d.X402.Network != "base" || d.X402.PayTo != "b" {
		t.Errorf("%+v", d)
	}
	if p := d.Products[0]; len(d.Products) != 1 || len(p.Upstreams) != 1 || p.Upstreams[0].Address != "prod:1" || p.Health.Path != "/h" || p.Health.Interval != "9s" {
		t.Errorf("%+v", d.Products)
	}
	if r := d.Routes[0]; len(d.Routes) != 1 || r.Path != "/one" || r.Timeout != "" || !slices.Equal(r.Methods, []string{"POST", "PUT"}) {
		t.Errorf("%+v", d.Routes)
	}
	if !slices.Equal(d.Remove, []string{"routes.sluice.docs"}) {
		t.Errorf("%q", d.Remove)
	}
}

// A fault stands where its field was said last, or where its object begins.
func TestPlaces(t *testing.T) {
	t.Parallel()
	_, src, err := Merge(layers("access_log: all\nroutes:\n- name: gone\n- name: one\n  path: /one\n  timeout: 1s\n", "remove: [routes.gone, routes.other]\nroutes:\n- {name: two, path: /two}\n- name: one\n  timeout: 2s\n"))
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{
		"routes[0].timeout": "b.yaml:5", "routes[0].path": "a.yaml:5", "routes[0].product": "a.yaml:4", "routes[1].path": "b.yaml:3",
		"access_log": "a.yaml:1", "remove[0]": "b.yaml:1", "classes": "", "routes[9].path": "",
	} {
		if got := src.Place(field); got != want {
			t.Errorf("%s: %q, want %q", field, got, want)
		}
	}
}

func TestTextsThatCannotBeMerged(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"a: [": "a.yaml: ", "- a": "a.yaml: ", "": "a.yaml: ", "{a: &x 1}": "a.yaml: "} {
		if _, _, err := Merge(layers(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, faults := merged(t, "include: builtin\nroutes: {a: b}\nclases: []\nproducts: [{name: a, upstream: 5, hots: b}]"); len(faults) != 5 {
		t.Errorf("%q", faults)
	}
}

// A document laid over itself says the same.
func FuzzMerge(f *testing.F) {
	f.Add([]byte(sample), []byte("routes: [{name: one, auth: null}]\nremove: ['routes.*']"))
	f.Add([]byte("scopes: [a, a]\nx402: {a: 1}"), []byte("x402: ~\nscopes: ~"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if d, src, err := Merge([][]Text{{{"a", a}}, {{"b", b}}}); err == nil {
			d, more := d.Expand(ProfileGateway)
			for _, fault := range append(d.Faults(), more...) {
				src.Place(fault.Field)
			}
		}
		once, _, err := Merge([][]Text{{{"a", a}}})
		if err != nil || once.Remove != nil || once.Include != nil {
			return
		}
		named := !slices.ContainsFunc(once.Faults(), func(f decision.Detail) bool {
			return strings.HasSuffix(f.Field, "name") || strings.HasSuffix(f.Field, "issuer") || strings.HasPrefix(f.Field, "scopes")
		})
		if twice, _, err := Merge([][]Text{{{"a", a}}, {{"a", a}}}); named && (err != nil || !same(once, twice)) {
			t.Errorf("%v\n%+v\n%+v", err, once, twice)
		}
	})
}
