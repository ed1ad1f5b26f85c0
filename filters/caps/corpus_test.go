package caps

import (
	"strings"
	"testing"

	"sluice.dev/sluice/filters/decision"
)

// valid are values that any parser must take: each spelled so that a filter
// which decodes and encodes again would change it.
var valid = []string{
	`0`, `-0`, `0.0`, `1.0`, `-1.50`, `1e3`, `1E+3`, `1e-3`, `123456789012345678901234567890`, `1.7976931348623157e309`, `0.1e1`, `-0e-0`,
	`true`, `false`, `null`, `""`, `" "`, `"\""`, `"\\"`, `"\/"`, `"\b\f\n\r\t"`, `"\u0000"`, `"\u0041"`, `"\u00e9"`, `"é"`, `"\u20ac"`, `"€"`,
	`"\ud83d\ude00"`, `"😀"`, `"\uD83D\uDE00"`, `"\ud83d"`, `"\ude00"`, `"\ude00\ud83d"`, `"\u2028"`, "\"\u2028\"", "\"\x7f\"", `"\ufffe"`, "\"\ufeff\"",
	`"{"`, `"}"`, `"]"`, `","`, `":"`, `"//"`, `"<script>&amp;</script>"`, `"\\\""`, `"a\\\\"`,
	`[]`, `[ ]`, `[[]]`, `[1,2]`, "[1\n,\t2 ]", `[null,[null,[]]]`, `[{"a":[{"b":[]}]}]`,
	`{}`, `{ }`, `{"":0}`, `{"a":1,"a":2}`, `{"\u0061":1}`, `{"b":1,"a":2}`, `{ "a" : { "b" : [ 1 , { } ] } }`, `{"a":{"a":{"a":{}}}}`,
	`{"max_tokens":"inside"}`, `{"stream":false,"max_completion_tokens":99999,"tools":[{"description":"x"}]}`,
}

// invalid are texts that are no value, for want of which a body is no JSON.
var invalid = []string{
	``, `,`, `:`, `}`, `]`, `{`, `[`, `tru`, `True`, `nul`, `NULL`, `undefined`, `NaN`, `Infinity`, `-Infinity`, `+1`, `-`, `--1`, `.5`, `1.`, `1.e3`, `1e`, `1e+`, `01`,
	`-01`, `0x1`, `1_000`, `0b1`, `1 2`, `"`, `"\"`, `"\x"`, `"\u12"`, `"\u123g"`, `"\U00e9"`, `'a'`, `a`, "\"\n\"", "\"\t\"", "\"\x00\"", "\"\xff\"", "\"\xc3\x28\"",
	"\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xc0\x80\"", `[1,]`, `[,1]`, `[1,,2]`, `[1 2]`, `[1}`, `[`, `{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{"a":1 "b":2}`,
	`{a:1}`, `{'a':1}`, `{1:2}`, `{"a":1]`, `{"a"::1}`, `// x`, `/**/ 1`, `# x`, `<a/>`, "\xef\xbb\xbf1", `1;`, `(1)`, "\x0b1", "\u00a01",
}

// places are where a value can stand without being one of those that the caps
// are about. % is the value.
var places = []string{
	`{"x":%,` + hello + `,"stream":true,"stream_options":{"include_usage":true},"max_tokens":7}`,
	`{` + hello + `,"stream":true,"stream_options":{"x":%,"include_usage":true},"max_tokens":7}`,
	`{"model":"m","messages":[{"role":"user","content":"hi","x":%}],"stream":true,"stream_options":{"include_usage":true},"max_tokens":7}`,
	`{` + hello + `,"tools":[{"function":{"name":"f","parameters":%}}],"stream":true,"stream_options":{"include_usage":true},"max_tokens":7}`,
	`{` + hello + `,"stream":true,"stream_options":{"include_usage":true},"max_tokens":7,"x":[0, % ]}`,
}

// TestWhatIsValidPassesUnchanged puts every value in every place, in a body that
// needs no cap: the result must be the same bytes.
func TestWhatIsValidPassesUnchanged(t *testing.T) {
	t.Parallel()
	for _, place := range places {
		for _, value := range valid {
			body := strings.Replace(place, "%", value, 1)
			got, report, bad := Apply(nil, []byte(body), Options{})
			if bad != nil {
				t.Errorf("%s is refused: %v", body, bad.Details)
			} else if string(got) != body || report.Changed {
				t.Errorf("%s became %s", body, got)
			}
		}
	}
}

// TestWhatIsInvalidIsRefused puts everything that is no value in every place.
func TestWhatIsInvalidIsRefused(t *testing.T) {
	t.Parallel()
	for _, place := range places {
		for _, value := range invalid {
			body := strings.Replace(place, "%", value, 1)
			got, _, bad := Apply(nil, []byte(body), Options{})
			if bad == nil {
				t.Errorf("%q passes as %q", body, got)
			} else if bad.Code != decision.InvalidRequest || len(bad.Details) != 1 || bad.Details[0].Field != "body" {
				t.Errorf("%q: %+v", body, bad)
			}
		}
	}
}

// TestCapsBesideEveryValue has every value beside members that are capped: the
// caps change those, and nothing around them.
func TestCapsBesideEveryValue(t *testing.T) {
	t.Parallel()
	for _, value := range valid {
		in := `{"a":` + value + `,"stream":0,"b":` + value + `,"max_completion_tokens":5000,` + hello + `,"max_tokens":null,"stream_options":[],"c":` + value + `}`
		want := `{"a":` + value + `,"stream":true,"b":` + value + `,"max_completion_tokens":4096,` + hello + `,"max_tokens":1024,"stream_options":{"include_usage":true},"c":` + value + `}`
		got, _, bad := Apply(nil, []byte(in), Options{})
		if bad != nil || string(got) != want {
			t.Errorf("%v\n got  %s\n want %s", bad, got, want)
		}
	}
}
