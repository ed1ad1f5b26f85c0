package app

import (
	"strings"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
	"sluice.dev/sluice/web/openapi/bodies"
)

// Every JSON body that our documents describe can be held against its description, and
// what that costs is linear in the body.
func TestEveryDescribedBodyIsHeldAgainstItsDescription(t *testing.T) {
	doc, err := everything()
	if err != nil {
		t.Fatal(err)
	}
	checks := bodies.New(everything)
	n := 0
	for path, item := range doc.Paths {
		for method := range item.(map[string]any) {
			method = strings.ToUpper(method)
			table, faults := bodies.Table(doc, method, path)
			for _, f := range faults {
				t.Errorf("%s %s: %+v", method, path, f)
			}
			if table == nil {
				continue
			}
			n++
			for _, unit := range []string{`"x%":1,`, `"name":[[{}]],`, `"timeline":{"clips":[1,2,3]},`, `"metadata":{"a":1},`} {
				raw := []byte("{" + strings.Repeat(unit, 20_000/len(unit)) + `"last":1}`)
				checks.Faults(method, path, raw) // the first time reads and compiles
				growth.Linear(t, len(raw), 16, 256<<10, func() { checks.Faults(method, path, raw) })
			}
		}
	}
	if n < 60 {
		t.Errorf("only %d operations with a body", n)
	}
}

// What is missing and out of range is named by its place.
func TestFaultsOfDescribedBodies(t *testing.T) {
	t.Parallel()
	checks := bodies.New(everything)
	for _, c := range []struct{ method, path, body, want string }{
		{"POST", "/v1/phone/lines", `{"name": 7}`, "name stream_id"},
		{"POST", "/v1/editor/renders", `{"timeline": {"clips": [{"asset_id": "rec_7h2kq0v9c4m8x1n5r3td", "speed": 9}, {}]}}`, "timeline.clips[0].speed timeline.clips[1].asset_id"},
		{"POST", "/v1/nothing", `{}`, ""},
		{"GET", "/v1/streams", `{}`, ""},
	} {
		var got []string
		for _, d := range checks.Faults(c.method, c.path, []byte(c.body)) {
			if got = append(got, d.Field); d.Expected == "" {
				t.Errorf("%+v", d)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s %s: %v", c.method, c.path, got)
		}
	}
}
