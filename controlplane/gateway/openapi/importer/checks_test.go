package importer

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/openapi/document"
)

// What requests must be, and what of it is not checked, is in testdata. The same
// import again, told nothing, changes nothing.
func TestRequestsAreValidated(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"checked-2.json", "checked-30.yaml", "checked-31.yaml"} {
		d, o := read(t, name), Options{Checks: Checks{On: name != "checked-31.yaml"}}
		r, file := made(t, d, o)
		var b strings.Builder
		b.Write(file)
		fmt.Fprintf(&b, "---\n# %d validated, %d not\n", r.Validated, r.Unvalidated)
		for _, n := range r.Notes {
			fmt.Fprintf(&b, "# %d × %s: %s\n", n.Count, n.What, strings.Join(n.Where, ", "))
		}
		golden(t, filepath.Join("testdata", name+".golden"), b.String())
		if c, _, err := config.ParseYAML(file); err != nil || !maps.Equal(c.Products[0].Schemas, r.Product.Schemas) || !slices.EqualFunc(c.Routes, r.Routes, func(a, b config.Route) bool { return a.Request.Equal(b.Request) }) {
			t.Errorf("%s: the file says something else", name)
		}
		o = Options{Checks: ChecksBeside(valid(t, file), r.Product.Name)}
		if _, again, err := Into(file, d, o); err != nil || string(again) != string(file) {
			t.Errorf("%s: the same import again: %v\n%s", name, err, again)
		}
	}
}

// bodied are operations whose bodies have schemas, one each.
func bodied(t *testing.T, schemas ...string) *document.Document {
	t.Helper()
	var lines []string
	for i, s := range schemas {
		lines = append(lines, fmt.Sprintf(`post /o%03d {"requestBody":{"content":{"application/json":{"schema":%s}}}}`, i, s))
	}
	return simple(t, lines...)
}

// What there is no room for is named, and all else is validated.
func TestChecksThatAreTooMuch(t *testing.T) {
	t.Parallel()
	wide := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"property%d":{"type":"string","maxLength":%d}`, i, i+1)
		}
		return `{"properties":{` + b.String()[1:] + `}}`
	}
	for name, c := range map[string]struct {
		d       *document.Document
		o       Checks
		yes, no int
		reason  string
	}{
		"many schemas": {bodied(t, wide(5000), wide(5)), Checks{On: true}, 1, 1, tooLarge},
		"text":         {bodied(t, wide(20), wide(5), wide(200)), Checks{On: true, Text: 2000, Tables: 1 << 20}, 2, 1, "no room left"},
		"tables":       {bodied(t, wide(5), wide(2000)), Checks{On: true, Text: 1 << 20, Tables: 10_000}, 1, 1, "tables of more than 4 MiB"},
		"brackets":     {bodied(t, `{"enum":["`+strings.Repeat("[", 60)+`","`+strings.Repeat("{", 60)+`"]}`, wide(1)), Checks{On: true}, 2, 0, ""},
		"dashes":       {bodied(t, `{"enum":["`+strings.Repeat("-", 900)+`"]}`, wide(1)), Checks{On: true}, 2, 0, ""},
		"depth":        {bodied(t, strings.Repeat(`{"items":`, 70)+"{}"+strings.Repeat("}", 70)), Checks{On: true}, 0, 1, "a schema "},
		"off":          {bodied(t, wide(5)), Checks{}, 0, 0, ""},
	} {
		r, _ := made(t, c.d, Options{Checks: c.o})
		var notes strings.Builder
		for _, n := range r.Notes {
			notes.WriteString(n.What + "\n")
		}
		if r.Validated != c.yes || r.Unvalidated != c.no || !strings.Contains(notes.String(), c.reason) {
			t.Errorf("%s: %d and %d: %s", name, r.Validated, r.Unvalidated, notes.String())
		}
	}
}

// A file has room for less than a configuration: an import validates what fits.
func TestFilesThatSchemasWouldMakeTooLarge(t *testing.T) {
	t.Parallel()
	var schemas []string
	for i := range 60 {
		schemas = append(schemas, fmt.Sprintf(`{"enum":["%d %s"]}`, i, strings.Repeat(strings.Repeat("x", 40)+`","`, 1500)))
	}
	r, file, err := Into(nil, bodied(t, schemas...), Options{Upstream: "http://127.0.0.1:1", Checks: Checks{On: true}})
	if err != nil || r.Validated == 0 || r.Unvalidated == 0 || r.Validated+r.Unvalidated != 60 {
		t.Fatal(r.Validated, r.Unvalidated, err)
	}
	valid(t, file)
}

// Checks go on with a new version, leave with --validate=false, and do not touch
// schemas of products whose routes have none.
func TestChecksOfFilesThatAreThere(t *testing.T) {
	t.Parallel()
	d := bodied(t, `{"maxLength":1}`, `{"type":"object","properties":{"a":{"maxLength":1}}}`)
	_, file := made(t, d, Options{Checks: Checks{On: true}})
	c := valid(t, file)
	beside := ChecksBeside(c, "simple-api")
	if !beside.On || beside.Text != config.MaxSchemas {
		t.Errorf("%+v", beside)
	}
	c.Routes[1].BodyLimit = 20 << 20
	c.Routes[1].Validate, c.Routes[1].Request = "", nil
	c.Products[0].Schemas = map[string]config.JSONSchema{"Old": "true"}
	r, err := Import(d, Options{Checks: ChecksBeside(c, "simple-api")})
	if err != nil || r.Validated != 1 || r.Unvalidated != 1 {
		t.Errorf("%d %d %v", r.Validated, r.Unvalidated, err)
	}
	if got := Merge(c, r); got.Products[0].Schemas != nil || got.Faults() != nil {
		t.Errorf("%+v %v", got.Products[0], got.Faults())
	}
	off := beside
	off.On = false
	if r, err = Import(d, Options{Checks: off}); err != nil {
		t.Fatal(err)
	}
	if got := Merge(c, r); got.Routes[0].Checks() || got.Products[0].Schemas != nil {
		t.Errorf("%+v", got)
	}
	c.Routes[0].Validate, c.Routes[0].Request = "", nil
	if got := Merge(c, r); got.Products[0].Schemas == nil {
		t.Error("schemas are gone that somebody has put there")
	}
}
