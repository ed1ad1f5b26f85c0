package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sluice.dev/sluice/filters/caps/jsonscan"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/limits/growth"
)

// every reads JSON in every way that a field can.
type every struct {
	target
	Map  map[string]inner `json:"map"`
	List []*inner         `json:"list"`
	Any  any              `json:"any"`
}

// details are what is wrong with a body.
func details(t *testing.T, body string) []decision.Detail {
	t.Helper()
	var v every
	err := Unmarshal([]byte(body), &v)
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok || e.Code != decision.InvalidRequest {
		t.Fatal(err)
	}
	return e.Details
}

func TestFieldsAreNamedByTheirPath(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 300)
	for body, want := range map[string]decision.Detail{
		`{"map":{"k":{"x":1}}}`:                  {Field: "map.k.x", Issue: "is not a known field", Expected: "one of n"},
		`{"list":[{"n":1},{"N":1}]}`:             {Field: "list[1].N", Issue: "is not a known field", Expected: "one of n"},
		`{"any":[{"a":{"b":1,"b":2}}]}`:          {Field: "any[0].a.b", Issue: "is given twice", Expected: "one member of this name"},
		`{"any":{"\u0061":1,"a":2}}`:             {Field: "any.a", Issue: "is given twice", Expected: "one member of this name"},
		`{"any":{"` + long + `":{"b":1,"b":2}}}`: {Field: "any." + long[:93] + "…", Issue: "is given twice", Expected: "one member of this name"},
		`{"any":"` + "\xff" + `"}`:               {Field: "any", Issue: "is not valid JSON: invalid UTF-8 at line 1, column 9", Expected: "text in UTF-8"},
		`{"any":["é","` + "\xc3\x28" + `"]}`:     {Field: "any[1]", Issue: "is not valid JSON: invalid UTF-8 at line 1, column 14", Expected: "text in UTF-8"},
		`{"` + "\xff" + `":1}`:                   {Field: "body", Issue: "is not valid JSON: invalid UTF-8 at line 1, column 3", Expected: "text in UTF-8"},
		`{"name":"\ud800"}`:                      {Field: "name", Issue: "has half a surrogate pair, which is no character", Expected: "both halves, or the character itself"},
		`{"name":"\udc00\ud800"}`:                {Field: "name", Issue: "has half a surrogate pair, which is no character", Expected: "both halves, or the character itself"},
		`{"any":{"\udFFf":1}}`:                   {Field: "any.\uFFFD", Issue: "has half a surrogate pair, which is no character", Expected: "both halves, or the character itself"},
		`{"name":"a"} {}`:                        {Field: "body", Issue: "has more after the first JSON value", Expected: "one object"},
		`{"name":`:                               {Field: "body", Issue: "is not valid JSON: unexpected end at line 1, column 9", Expected: "object"},
		`{"ñame":1}`:                             {Field: "ñame", Issue: "is not a known field", Expected: "one of any, at, count, in, list, map, name, tags"},
	} {
		if diff := cmp.Diff([]decision.Detail{want}, details(t, body)); diff != "" {
			t.Errorf("%.80s: %s", body, diff)
		}
	}
	for _, body := range []string{
		`{"name":"\ud834\udd1e"}`, `{"name":"\\ud800"}`, `{"name":"\"\\"}`, `{"any":{"a":{"a":[{"a":1},{"a":2}]}}}`,
		`{"map":{"x":{"n":1},"n":{"n":2}},"list":[null,{"n":3}]}`, " {\"any\":[1,\"{[,:\",true]}\n", `{}`,
	} {
		if got := details(t, body); got != nil {
			t.Errorf("%s: %+v", body, got)
		}
	}
}

// typed has values of every kind within others.
type typed struct {
	Clips []struct {
		In    *float64          `json:"in"`
		N     int8              `json:"n"`
		U     uint16            `json:"u"`
		Mute  bool              `json:"mute"`
		Raw   []byte            `json:"raw"`
		At    time.Time         `json:"at"`
		Marks []time.Time       `json:"marks"`
		Any   any               `json:"any"`
		JSON  json.RawMessage   `json:"json"`
		Of    map[string]string `json:"of"`
		By    map[int]string    `json:"by"`
		Pair  [2]string         `json:"pair"`
		Exact json.Number       `json:"exact"`
		Self  *self             `json:"self"`
	} `json:"clips"`
	By map[int]string `json:"by"`
}

// self reads itself, and wants a number.
type self struct{ n int }

func (s *self) UnmarshalJSON(raw []byte) error { return json.Unmarshal(raw, &s.n) }

// Every value of the wrong type is named by its place, beside what else is wrong.
func TestEveryValueOfTheWrongTypeIsNamed(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"clips":[{"in":"x","what":1},{"in":1},{"in":true,"n":1.5}]}`:                                                     `clips[0].in: string, number|clips[0].what|clips[2].in: bool, number|clips[2].n: number 1.5, integer`,
		`{"clips":[{"n":128,"u":-1},{"n":1e2},{"n":-128,"u":65535}]}`:                                                      `clips[0].n: number 128, integer|clips[0].u: number -1, integer|clips[1].n: number 1e2, integer`,
		`{"clips":[{"n":` + strings.Repeat("9", 99) + `}]}`:                                                                `clips[0].n: number ` + strings.Repeat("9", 29) + `…, integer`,
		`{"clips":[{"in":1e999,"mute":"no","raw":7,"of":[]}]}`:                                                             `clips[0].in: number 1e999, number|clips[0].mute: string, boolean|clips[0].of: array, object|clips[0].raw: number, base64`,
		`{"clips":[{"of":{"a":"b","c":1}},7,"x"]}`:                                                                         `clips[0].of.c: number, string|clips[1]: number, object|clips[2]: string, object`,
		`{"clips":[{"at":"soon"},{"at":7},{"marks":["soon",{}]}]}`:                                                         `clips[0].at, ISO 8601 timestamp|clips[1].at, ISO 8601 timestamp|clips[2].marks[0], ISO 8601 timestamp|clips[2].marks[1], ISO 8601 timestamp`,
		`{"clips":[{"self":"x"},{"self":{"in":1}},{"self":7}]}`:                                                            `clips[0].self: string, integer|clips[1].self: object, integer`,
		`{"clips":[{"pair":"x","exact":"y"},{"pair":["x"],"exact":1e9}]}`:                                                  `clips[0].exact: string, number|clips[0].pair: string, array of string`,
		`{"clips":[{"pair":[1,"x"]}],"by":{"x":"y"}}`:                                                                      `by: number x, integer|clips[0].pair[0]: number, string`,
		`{"clips":[{"raw":"!"},{"raw":"AA=="}]}`:                                                                           `clips[0].raw: string, base64`,
		`{"clips":7}`:                                                                                                      `clips: number, array of object`,
		`{"clips":[{"in":null,"n":null,"at":null,"self":null,"any":[{}],"json":{"a":[1]},"of":null,"by":{"7":"x"}},null]}`: ``,
	} {
		var v typed
		err := Unmarshal([]byte(body), &v)
		var got []string
		if e, ok := errors.AsType[*apierror.Error](err); ok {
			for _, d := range e.Details {
				text := d.Field
				if issue, wrong := strings.CutPrefix(d.Issue, "has the wrong type"); wrong {
					text += issue + ", " + d.Expected
				} else if d.Issue == "is not valid" {
					text += ", " + d.Expected
				}
				got = append(got, text)
			}
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s:\n got %s\nwant %s", body, strings.Join(got, "|"), want)
		}
	}
}

// What a walk lets pass is what encoding/json reads, and the other way round.
func FuzzTypes(f *testing.F) {
	for _, body := range []string{`{"clips":[{"in":1,"n":-1,"u":1,"mute":true,"raw":"AA==","at":"2026-01-02T03:04:05Z","any":{},"json":[],"of":{"a":"b"},"pair":["a"],"exact":1}]}`, `{"clips":[{"exact":"1"}]}`,
		`{"clips":[{"raw":"!"}]}`, `{"clips":[{"by":{"x":"y"}}]}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		list, valid := check(raw, reflect.TypeFor[typed]())
		if !valid || jsonscan.Root(raw).Kind(raw) != jsonscan.Object {
			return
		}
		var v typed
		strict := json.NewDecoder(bytes.NewReader(raw))
		err := strict.Decode(&v)
		ours := Unmarshal(raw, new(typed))
		if err != nil && ours == nil {
			t.Fatalf("%s is taken, and encoding/json says %v", raw, err)
		}
		for _, d := range list {
			if strings.HasPrefix(d.Issue, "has the wrong type") && err == nil {
				t.Fatalf("%s: %+v, and encoding/json takes it", raw, d)
			}
		}
	})
}

// Of many known names, a detail says which are most like the one that is not.
func TestNearestNamesAreNamed(t *testing.T) {
	t.Parallel()
	var v struct {
		A string `json:"latency_of_the_primary_upstream"`
		B string `json:"latency_of_the_secondary_upstream"`
		C string `json:"catch_up_policy"`
		D string `json:"overlap_policy"`
		E string `json:"everything_else_that_is_rather_long"`
		F string `json:"and_something_that_is_still_longer_than_that"`
		G string `json:"timezone"`
	}
	for name, want := range map[string]string{"timeZone": "timezone", "catchUpPolicy": "catch_up_policy", "OVERLAP": "overlap_policy"} {
		err := Unmarshal(fmt.Appendf(nil, `{%q:1}`, name), &v)
		e, ok := errors.AsType[*apierror.Error](err)
		if !ok || !strings.HasPrefix(e.Details[0].Expected, "a known field, such as "+want) || len(e.Details[0].Expected) > maxExpected {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// bodies grow with n in every way that a body can.
var bodies = map[string]func(n int) string{
	"names given twice": func(n int) string { return `{"any":{` + strings.Repeat(`"":1,`, n/5) + `"":1}}` },
	"twice under a long name": func(n int) string {
		return `{"any":{"` + strings.Repeat("n", n/2) + `":{` + strings.Repeat(`"":1,`, n/10) + `"":1}}}`
	},
	"twice at every depth": func(n int) string {
		return `{"any":` + strings.Repeat(`{"`+strings.Repeat("n", n/60)+`":`, 60) + "1" + strings.Repeat("}", 60) + "}"
	},
	"unknown names":            func(n int) string { return many(n, `"%d":1`) },
	"different names":          func(n int) string { return `{"any":` + many(n, `"%d":1`) + `}` },
	"names in escapes":         func(n int) string { return `{"any":` + many(n, `"\u0061%d":1`) + `}` },
	"small objects":            func(n int) string { return `{"list":[` + strings.Repeat(`{"n":1},`, n/8) + `null]}` },
	"lone surrogates":          func(n int) string { return `{"any":[` + strings.Repeat(`"\ud800",`, n/9) + `1]}` },
	"escapes":                  func(n int) string { return `{"name":"` + strings.Repeat(`\\`, n/2) + `"}` },
	"blanks behind":            func(n int) string { return `{}` + strings.Repeat(" ", n) },
	"blanks between":           func(n int) string { return `{"tags":[` + strings.Repeat(` "" ,`, n/5) + `""]}` },
	"a long number":            func(n int) string { return `{"count":` + strings.Repeat("1", n) + `}` },
	"commas":                   func(n int) string { return `{"any":[` + strings.Repeat(`,`, n) + `]}` },
	"bytes that are no UTF-8":  func(n int) string { return `{"any":"` + strings.Repeat("\xff", n) + `"}` },
	"deep":                     func(n int) string { return strings.Repeat(`{"a":`, n/5) },
	"values of the wrong type": func(n int) string { return many(n, `"name":%d`) },
	"wrong values deep down":   func(n int) string { return `{"list":[` + strings.Repeat(`{"n":"x"},`, n/10) + `{"n":true}]}` },
	"many numbers":             func(n int) string { return `{"any":[` + strings.Repeat(`1,`, n/2) + `1]}` },
	"control characters, named": func(n int) string {
		return `{"any":{` + strings.Repeat(`"`+strings.Repeat(`\u0000`, 100)+`":1,`, n/604) + `"":1}}`
	},
}

// many is an object of about n bytes.
func many(n int, member string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, member+",", i)
	}
	return b.String()[:b.Len()-1] + "}"
}

// What a body costs, and what is answered to it, does not depend on its form.
func TestCostOfABody(t *testing.T) {
	for name, body := range bodies {
		for _, n := range []int{1 << 10, 1 << 14, 1 << 18} {
			raw := []byte(body(n))
			growth.Linear(t, len(raw), multiple, constant, func() { _ = Unmarshal(raw, new(every)) })
			w := httptest.NewRecorder()
			if err := Unmarshal(raw, new(every)); err != nil {
				quiet.Error(w, httptest.NewRequest("POST", "/", nil), err)
			}
			if w.Body.Len() > MaxError || strings.Count(w.Body.String(), `"field"`) > decision.MaxDetails {
				t.Errorf("%s, %d bytes: an answer of %d bytes", name, n, w.Body.Len())
			}
		}
	}
}

// What Unmarshal may allocate: see CheckJSON, and encoding/json for what it fills.
const multiple, constant = 48, 64 << 10

// Whatever the details hold, an answer is small.
func TestAnswersOfErrorsAreSmall(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\x00", 1<<20)
	e := &apierror.Error{Code: decision.InvalidRequest, Message: long}
	for range 1000 {
		e.Details = append(e.Details, decision.Detail{Field: long, Issue: long, Expected: long})
	}
	w := answer(t, e)
	if w.Body.Len() > MaxError || !strings.Contains(w.Body.String(), decision.More.Issue) {
		t.Fatalf("%d bytes: %.300s", w.Body.Len(), w.Body)
	}
}

// Whatever the body, Unmarshal answers with a code of ours, never panics, and
// costs what it says.
func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"name":"a","in":{"n":1}}`))
	f.Add([]byte(`{"a":{"a":[{"a":1,"a":2}]}}`))
	for _, body := range bodies {
		f.Add([]byte(body(700)))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		growth.Linear(t, len(raw), multiple, constant, func() {
			if err := Unmarshal(raw, new(every)); err != nil && apierror.Code(err) != decision.InvalidRequest {
				t.Fatal(err)
			}
		})
	})
}
