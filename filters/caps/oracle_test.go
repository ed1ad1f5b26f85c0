package caps

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"sluice.dev/sluice/platform/limits/growth"
)

// FuzzApply compares Apply with the same rules written over decoded values:
// the standard library says what is JSON, what a provider reads, and what must
// have stayed as it was.
func FuzzApply(f *testing.F) {
	for _, body := range corpus {
		f.Add([]byte(body), false)
		f.Add([]byte(body), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, strip bool) {
		opts := Options{StripTools: strip}
		growth.Linear(t, len(body), multiple, constant, func() { _, _, _ = Apply(nil, body, opts) })
		out, _, bad := Apply(nil, body, opts)
		if bad != nil {
			if len(bad.Details) == 0 {
				t.Fatalf("%q is refused without a reason", body)
			}
			return
		}
		if !json.Valid(body) || !utf8.Valid(body) || !json.Valid(out) {
			t.Fatalf("%q became %q", body, out)
		}
		if again, _, bad := Apply(nil, out, opts); bad != nil || !bytes.Equal(again, out) {
			t.Fatalf("not idempotent: %q, then %q", out, again)
		}
		want := decode(t, body)
		if strings.Contains(strings.ToLower(text(t, want["messages"])), skillsSection) {
			return // TestReminders has the rule for these
		}
		oracle(want, strip)
		if got := decode(t, out); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q\nbecame %q\n got  %v\n want %v", body, out, got, want)
		}
	})
}

var corpus = []string{
	`{` + hello + `}`,
	full(`"max_completion_tokens":1e9,"tools":[{"function":{"description":"` + strings.Repeat(`\u00e9`, 300) + `"}}],"tool_choice":"auto"`),
	full(`"stream_options":{"x":[1.0,{"a":"\/"}]},"Stream":false,"\u0073tream":0`),
	full(`"max_tokens":null,"max_completion_tokens":null,"n":null,"tools":null,"stream_options":null`),
	`{"messages":[{"role":"assistant","content":null,"tool_calls":[]},{"role":"tool","content":[{"text":"x"}]}],"model":"\ud83d"}`,
	full(`"x":1,"x":2,"model":"first"`),
	full(`"tools":[{"description":"` + strings.Repeat("a", 199) + `\ud83d\ude00\ude00"}],"parallel_tool_calls":false`),
	`{"tools":[],` + hello + `,"Tools":[],"functions":[{"description":""}]}`,
	`{"model":"m","messages":[{"role":"user","content":"<system-reminder>available_skills</system-reminder>"}]}`,
	`{"model":"m","messages":[{"role":"user","content":"x","content":"y"}],"messages":[]}`,
	`[` + hello + `]`, `{"model":`, `{` + hello + `,}`, `{` + hello + `}}`, `nul`, ``,
}

// decode reads the last of members with the same name, as most parsers do.
func decode(t *testing.T, b []byte) map[string]any {
	t.Helper()
	var v map[string]any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// oracle applies the rules to a decoded request.
func oracle(v map[string]any, strip bool) {
	for k := range v {
		i := slices.IndexFunc(spelling[:], func(s string) bool { return strings.EqualFold(s, k) })
		if i >= 0 && (spelling[i] != k || strip && i >= int(tools)) {
			delete(v, k)
		}
	}
	v["stream"] = true
	options, ok := v["stream_options"].(map[string]any)
	if !ok {
		options = map[string]any{}
		v["stream_options"] = options
	}
	for k := range options {
		if strings.EqualFold(k, "include_usage") {
			options[k] = true
		}
	}
	options["include_usage"] = true
	if v["max_tokens"] == nil {
		v["max_tokens"] = json.Number("1024")
	}
	for _, limit := range []string{"max_tokens", "max_completion_tokens"} {
		if n, ok := v[limit].(json.Number); ok {
			if f, err := n.Float64(); err != nil || f > 4096 {
				v[limit] = json.Number("4096")
			}
		}
	}
	for _, k := range []string{"tools", "functions"} {
		list, _ := v[k].([]any)
		for _, tool := range list {
			oracleTool(tool.(map[string]any))
		}
	}
}

func oracleTool(tool map[string]any) {
	for k, v := range tool {
		function, ok := v.(map[string]any)
		if ok && strings.EqualFold(k, "function") {
			for k, v := range function {
				function[k] = oracleCut(k, v)
			}
		}
		tool[k] = oracleCut(k, v)
	}
}

func oracleCut(name string, v any) any {
	s, ok := v.(string)
	if r := []rune(s); ok && strings.EqualFold(name, "description") && len(r) > 200 {
		return string(r[:200])
	}
	return v
}

// BenchmarkApply is the case of every request that a client wrote rightly: 8 KB
// with nothing to change but what is omitted.
func BenchmarkApply(b *testing.B) {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("lorem ipsum ", 680) + `"}]}`)
	dst := make([]byte, 0, 2*len(body))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, bad := Apply(dst, body, Options{}); bad != nil {
			b.Fatal(bad)
		}
	}
}
