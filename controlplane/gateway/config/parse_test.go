package config

import (
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/deploy"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/limits/growth"
)

const sample = `
classes:
  - {name: default, per_minute: 60}
plans: []
scopes: []
products:
  - name: media
    upstreams:
      - address: "${media}"
routes:
  - name: one
    path: /one
    auth: [none]
    product: media
`

func TestYAML(t *testing.T) {
	t.Parallel()
	d, src, err := ParseYAML([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	if d.Routes[0].Path != "/one" || d.Products[0].Upstreams[0].Address != "${media}" {
		t.Errorf("%+v", d)
	}
	for field, line := range map[string]int{
		"routes[0].path": 12, "routes[0].class": 11, "products[0].upstreams[0].address": 9, "routes[7].name": 11, "nothing": 0, "": 0,
	} {
		if got := src.Line(field); got != line {
			t.Errorf("%s is on line %d, want %d", field, got, line)
		}
	}
}

func TestEveryFieldAtFaultIsNamed(t *testing.T) {
	t.Parallel()
	_, err := ParseJSON([]byte(`{"classes": [{"name": 7, "color": "red"}], "routes": [{"name": "a"}, {"paths": []}, {"body_limit": -1}], "extra": 1, "scopes": "all"}`))
	got := fieldsAtFault(t, err)
	slices.Sort(got)
	if strings.Join(got, " ") != "classes[0].color classes[0].name extra routes[1].paths routes[2].body_limit scopes" {
		t.Errorf("%q", got)
	}
}

func TestTextsThatAreNoDocument(t *testing.T) {
	t.Parallel()
	for what, yaml := range map[string]string{
		"nothing":          "",
		"only a comment":   "# a",
		"a list":           "- a",
		"a word":           "a",
		"two documents":    "classes: []\n---\nclasses: []",
		"bad indentation":  "classes:\n  - a\n - b\n:",
		"a name twice":     "scopes: []\nscopes: []",
		"an alias":         "scopes: &a []\nplans: *a",
		"an anchor":        "scopes: &a []",
		"deep flow":        strings.Repeat("[", 200),
		"deep block":       strings.Repeat("- ", 2000),
		"larger than read": strings.Repeat(" ", maxYAMLBytes+1),
	} {
		_, _, err := ParseYAML([]byte(yaml))
		if code := apierror.Code(err); code != decision.InvalidRequest && code != decision.TooLarge {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func FuzzParseYAML(f *testing.F) {
	f.Add([]byte(sample))
	f.Add(deploy.Document)
	f.Add([]byte("classes: [{name: a, per_minute: 1e3}]\nroutes: [~]"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, src, err := ParseYAML(b)
		if err != nil {
			return
		}
		for _, field := range fieldsAtFault(t, d.Validate()) {
			src.Line(field)
		}
	})
}

func FuzzParseJSON(f *testing.F) {
	f.Add([]byte(`{"classes":[{"name":"default","per_minute":60}],"routes":[null,{}]}`))
	f.Add([]byte(`{"plans":[{"name":"a","limits":{"x":{"per_minute":1}}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		growth.Linear(t, len(b), 1<<10, 256<<10, func() {
			if d, err := ParseJSON(b); err == nil {
				d, _ = d.Expand(ProfileGateway)
				d.Faults()
			}
		})
		d, err := ParseJSON(b)
		if err != nil || d.Validate() != nil {
			return
		}
		if _, err := d.Policy(1, "", ProvisionalNumbers(d)); err != nil && apierror.Code(err) == decision.Internal {
			t.Errorf("a valid document does not compile: %v", err)
		}
	})
}
