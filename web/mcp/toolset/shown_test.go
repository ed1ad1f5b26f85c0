package toolset_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
	"sluice.dev/sluice/web/mcp/toolset"
)

func TestFieldsOfAnAnswer(t *testing.T) {
	t.Parallel()
	const body = ` {"data": [{"id": 1, "name": "a", "at": {"x": 1, "y": 2}}, {"id": 2, "at": null}], "pagination": {"has_more": false}, "caf\u00e9": 3} `
	for fields, c := range map[string]struct{ want, missing string }{
		"":                       {strings.TrimSpace(body), ""},
		"data.id":                {`{"data":[{"id":1},{"id":2}]}`, ""},
		"data.at.y data.id":      {`{"data":[{"id":1,"at":{"y":2}},{"id":2,"at":null}]}`, ""},
		"data.at.y data.at":      {`{"data":[{"at":{"x":1,"y":2}},{"at":null}]}`, ""},
		"pagination":             {`{"pagination":{"has_more":false}}`, ""},
		"café":                   {`{"caf\u00e9":3}`, ""},
		"data.name":              {`{"data":[{"name":"a"},{}]}`, ""},
		"data.none pagination.x": {`{"data":[{},{}],"pagination":{}}`, "data.none pagination.x"},
		"none":                   {`{}`, "none"},
	} {
		s, ok := toolset.Show([]byte(body), strings.Fields(fields), 1<<20)
		var got, want any
		if json.Unmarshal(s.Text, &got) != nil || json.Unmarshal([]byte(c.want), &want) != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %s, want %s", fields, s.Text, c.want)
		}
		if !ok || s.Cut() || strings.Join(s.Missing, " ") != c.missing {
			t.Errorf("%q: %v %+v", fields, ok, s)
		}
	}
	var many []string
	for i := range 50 {
		many = append(many, fmt.Sprintf("data.x%02d.%s", i, strings.Repeat(".", 100)))
	}
	if s, _ := toolset.Show([]byte(body), many, 1<<20); len(s.Missing) != 20 || s.Missing[0] != "data.x00" {
		t.Errorf("%d are missing: %v", len(s.Missing), s.Missing)
	}
	if s, _ := toolset.Show([]byte(`{"data":[],"pagination":null}`), []string{"data.id"}, 100); len(s.Missing) > 0 {
		t.Errorf("of an empty list nothing is missing: %v", s.Missing)
	}
}

// large are answers of about n bytes.
var large = map[string]func(n int) string{
	"a list": func(n int) string {
		return `{"data":[` + strings.Repeat(`{"id":"abc","tags":["a","b"]},`, n/30) + `null],"next":"c"}`
	},
	"a list of lists": func(n int) string { return `[[` + strings.Repeat(`[1,2,3],`, n/8) + `[]],[4]]` },
	"a text":          func(n int) string { return `{"text":"` + strings.Repeat(`é\u00e9`, n/8) + `","next":"c"}` },
	"a number":        func(n int) string { return `{"n":` + strings.Repeat("7", n) + `}` },
	"members":         func(n int) string { return `{` + strings.Repeat(`"name":"value",`, n/15) + `"next":"c"}` },
	"a long name":     func(n int) string { return `{"` + strings.Repeat("x", n) + `":1,"next":"c"}` },
	"depth": func(n int) string {
		return strings.Repeat(`{"a":[`, 20) + strings.Repeat(`{},`, n/3) + `{}` + strings.Repeat(`]}`, 20)
	},
	"large items": func(n int) string {
		return `[{"text":"` + strings.Repeat("x", n/2) + `"},{"text":"` + strings.Repeat("x", n/2) + `"}]`
	},
}

// However large an answer is, what is shown is JSON of a bounded size, says what is
// missing, and what stands behind a list is there.
func TestLargeAnswersAreCut(t *testing.T) {
	t.Parallel()
	for name, of := range large {
		for _, n := range []int{20_000, 2_000_000} {
			s, ok := toolset.Show([]byte(of(n)), nil, 10_000)
			if !ok || len(s.Text) > 10_000+8_192 || !json.Valid(s.Text) || !s.Cut() {
				t.Errorf("%s of %d: %v, %d bytes, %v: %.200s", name, n, ok, len(s.Text), s.Cut(), s.Text)
			}
			if strings.Contains(of(n), `"next"`) && name != "members" && !strings.Contains(string(s.Text), `"next":"c"`) {
				t.Errorf("%s of %d: what stands behind is not shown: …%s", name, n, s.Text[max(0, len(s.Text)-100):])
			}
		}
	}
	s, _ := toolset.Show([]byte(large["a list"](30_000)), nil, 3_000)
	if p := s.Lists["data"]; p.Of != 1001 || p.Shown < 90 || p.Shown > 110 {
		t.Errorf("%+v", s.Lists)
	}
	for _, bad := range []string{"", "{", strings.Repeat("[", 65) + strings.Repeat("]", 65), "no"} {
		if _, ok := toolset.Show([]byte(bad), nil, 100); ok {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestANoteSaysHowToSeeTheRest(t *testing.T) {
	t.Parallel()
	by := tools(t)
	s, _ := toolset.Show([]byte(large["a list"](30_000)), nil, 3_000)
	for tool, want := range map[string]string{"listThings": "call again with limit", "getThing": "name the fields"} {
		if note, err := by[tool].Note(s); err != nil || !json.Valid(note) || !strings.Contains(string(note), want) || !strings.Contains(string(note), `"of":1001`) {
			t.Errorf("%s: %s, %v", tool, note, err)
		}
	}
	whole, _ := toolset.Show([]byte(`{}`), nil, 100)
	if note, err := by["getThing"].Note(whole); note != nil || err != nil {
		t.Errorf("%s, %v", note, err)
	}
}

// The argument chooses what is shown and is no part of the request.
func TestTheArgumentFields(t *testing.T) {
	t.Parallel()
	get := tools(t)["getThing"]
	r, faults := get.Request([]byte(`{"id":"x","fields":["a.b","c"]}`))
	if len(faults) > 0 || r.Target != "/v1/things/x" || len(r.Body) > 0 || !slices.Equal(r.Fields, []string{"a.b", "c"}) {
		t.Errorf("%+v %v", r, faults)
	}
	for _, bad := range []string{`7`, `[7]`, `[""]`, `["` + strings.Repeat("x", 201) + `"]`, `[` + strings.Repeat(`"a",`, 50) + `"a"]`} {
		if _, faults := get.Request([]byte(`{"id":"x","fields":` + bad + `}`)); len(faults) != 1 || faults[0].Field != "fields" {
			t.Errorf("%.40s: %v", bad, faults)
		}
	}
	if _, faults := tools(t)["deleteThing"].Request([]byte(`{"id":"x","fields":["a"]}`)); len(faults) != 1 {
		t.Errorf("a tool without an answer: %v", faults)
	}
}

// Whatever an answer is, what is shown of it is JSON, and costs what it says.
func FuzzShow(f *testing.F) {
	for _, of := range large {
		f.Add([]byte(of(500)), "data.id", 200)
	}
	f.Add([]byte(`{"a":"é\ud800…"}`), "a", 1)
	f.Fuzz(func(t *testing.T, body []byte, fields string, most int) {
		most = max(0, min(most, 1<<16))
		asked := strings.Fields(fields)
		asked = asked[:min(len(asked), 50)]
		growth.Linear(t, len(body)+50*len(fields), 64, 64<<10, func() { _, _ = toolset.Show(body, asked, most) })
		if s, ok := toolset.Show(body, asked, most); ok && !json.Valid(s.Text) {
			t.Fatalf("%s", s.Text)
		}
	})
}
