package caps

import (
	"strings"
	"testing"

	"sluice.dev/sluice/filters/decision"
)

const hello = `"model":"m","messages":[{"role":"user","content":"hi"}]`

// forced is what a request that says nothing about it gets at its end.
const forced = `,"stream":true,"stream_options":{"include_usage":true},"max_tokens":1024}`

func TestApply(t *testing.T) {
	t.Parallel()
	d200, d201 := strings.Repeat("é", 200), strings.Repeat("é", 201)
	for name, c := range map[string]struct{ in, want string }{
		"forced where omitted":       {`{` + hello + `}`, `{` + hello + forced},
		"white space stays":          {"\n{ " + hello + " }\n", "\n{ " + hello + forced[:len(forced)-1] + " }\n"},
		"stream false":               {full(`"stream":false`), full(`"stream":true`)},
		"stream of another type":     {full(`"stream":"no"`), full(`"stream":true`)},
		"usage refused":              {full(`"stream_options":{"a":1,"include_usage":false}`), full(`"stream_options":{"a":1,"include_usage":true}`)},
		"usage omitted":              {full(`"stream_options":{"a":1}`), full(`"stream_options":{"include_usage":true,"a":1}`)},
		"options empty":              {full(`"stream_options":{}`), full(`"stream_options":{"include_usage":true}`)},
		"options null":               {full(`"stream_options":null`), full(`"stream_options":{"include_usage":true}`)},
		"usage in another case":      {full(`"stream_options":{"Include_Usage":false}`), full(`"stream_options":{"include_usage":true,"Include_Usage":true}`)},
		"max_tokens null":            {full(`"max_tokens":null`), full(`"max_tokens":1024`)},
		"max_tokens is the client's": {full(`"max_tokens":4096`), full(`"max_tokens":4096`)},
		"max_tokens is too much":     {full(`"max_tokens":100000`), full(`"max_tokens":4096`)},
		"completion clamped":         {full(`"max_completion_tokens":4097`), full(`"max_completion_tokens":4096`)},
		"completion clamped, 1e6":    {full(`"max_completion_tokens":1e6`), full(`"max_completion_tokens":4096`)},
		"completion at the bound":    {full(`"max_completion_tokens":4.096e3`), full(`"max_completion_tokens":4.096e3`)},
		"completion null":            {full(`"max_completion_tokens":null`), full(`"max_completion_tokens":null`)},
		"name in escapes":            {full(`"max_\u0063ompletion_tokens":9999`), full(`"max_\u0063ompletion_tokens":4096`)},
		"last of two counts":         {full(`"max_completion_tokens":1,"x":0,"max_completion_tokens":9999`), full(`"x":0,"max_completion_tokens":4096`)},
		"name in another case":       {full(`"MAX_COMPLETION_TOKENS":9999,"max_completion_tokens":5`), full(`"max_completion_tokens":5`)},
		"unknown members":            {full(`"x":{"b":1.50,"a":"\u00e9\/"},"temperature":1E-1`), full(`"x":{"b":1.50,"a":"\u00e9\/"},"temperature":1E-1`)},
		"duplicates we do not know":  {full(`"metadata":1,"metadata":2`), full(`"metadata":1,"metadata":2`)},
		"description in function":    {full(tool(d201)), full(tool(d200))},
		"description in tool":        {full(`"tools":[{"description":"` + d201 + `"}]`), full(`"tools":[{"description":"` + d200 + `"}]`)},
		"description in functions":   {full(`"functions":[{"description":"` + d201 + `"}]`), full(`"functions":[{"description":"` + d200 + `"}]`)},
		"description at the bound":   {full(tool(d200)), full(tool(d200))},
		"both of two descriptions":   {full(`"tools":[{"description":"` + d201 + `","Description":"` + d201 + `"}]`), full(`"tools":[{"description":"` + d200 + `","Description":"` + d200 + `"}]`)},
		"a parameter's description":  {full(parameter(d201)), full(parameter(d201))},
		"pair of surrogates":         {full(tool(strings.Repeat(`\ud83d\ude00`, 201))), full(tool(strings.Repeat(`\ud83d\ude00`, 200)))},
		"pair behind 199":            {full(tool(strings.Repeat("a", 199) + `\ud83d\ude00b`)), full(tool(strings.Repeat("a", 199) + `\ud83d\ude00`))},
	} {
		if got, _, bad := Apply(nil, []byte(c.in), Options{}); bad != nil {
			t.Errorf("%s: %v", name, bad.Details)
		} else if string(got) != c.want {
			t.Errorf("%s:\n in   %s\n got  %s\n want %s", name, c.in, got, c.want)
		}
	}
}

// full returns a request that needs no member added, with more members in it.
func full(members string) string {
	for _, m := range []string{`"stream":true`, `"stream_options":{"include_usage":true}`, `"max_tokens":7`} {
		if !strings.Contains(members, m[:strings.Index(m, ":")]+":") {
			members = m + "," + members
		}
	}
	return `{` + members + `,` + hello + `}`
}

func tool(description string) string {
	return `"tools":[{"type":"function","function":{"name":"f","description":"` + description + `","parameters":{}}}]`
}

func parameter(description string) string {
	return `"tools":[{"function":{"parameters":{"properties":{"a":{"description":"` + description + `"}}}}}]`
}

func TestStripTools(t *testing.T) {
	t.Parallel()
	all := `"tools":[{}],"tool_choice":"auto","parallel_tool_calls":true,"functions":[],"function_call":"none"`
	end := `"stream":true,"stream_options":{"include_usage":true},"max_tokens":7`
	for name, c := range map[string]struct{ in, want string }{
		"in front":                     {`{` + all + `,` + hello + `,` + end + `}`, `{` + hello + `,` + end + `}`},
		"between":                      {`{` + hello + `,` + all + `,` + end + `}`, `{` + hello + `,` + end + `}`},
		"behind":                       {`{` + hello + `,` + end + `,` + all + `}`, `{` + hello + `,` + end + `}`},
		"behind, with members missing": {`{` + hello + ` , ` + all + ` }`, `{` + hello + forced[:len(forced)-1] + ` }`},
		"scattered":                    {`{"tools":1,` + hello + `,"tools":2,` + end + `,"Tools":3}`, `{` + hello + `,` + end + `}`},
	} {
		got, report, bad := Apply(nil, []byte(c.in), Options{StripTools: true})
		if bad != nil {
			t.Errorf("%s: %v", name, bad.Details)
		} else if string(got) != c.want || !report.Stripped || report.Tools != 0 {
			t.Errorf("%s: %+v\n in   %s\n got  %s\n want %s", name, report, c.in, got, c.want)
		}
	}
}

func TestReminders(t *testing.T) {
	t.Parallel()
	open, end := "<system-reminder>", "</system-reminder>"
	for name, c := range map[string]struct{ in, want string }{
		"whole text":      {open + "<available_skills>x</available_skills>" + end, Fallback},
		"text around it":  {"a " + open + "available_skills: x" + end + " b", "a " + Fallback + " b"},
		"no skills":       {open + "be brief" + end, open + "be brief" + end},
		"no reminder":     {"what are available_skills?", "what are available_skills?"},
		"skills outside":  {open + "x" + end + " available_skills", open + "x" + end + " available_skills"},
		"second of two":   {open + "x" + end + open + "available_skills" + end, open + "x" + end + Fallback},
		"never closed":    {"a" + open + "available_skills", "a" + Fallback},
		"nested":          {open + open + end + "available_skills" + end + "z", Fallback + "z"},
		"in escapes":      {`\u003csystem-reminder>\u0061vailable_skills` + end, Fallback},
		"in another case": {"<System-Reminder>Available_Skills</SYSTEM-REMINDER>", Fallback},
		"with attributes": {`<system-reminder a=\"b\">available_skills` + end, Fallback},
	} {
		for _, form := range []string{
			`"messages":[{"role":"system","content":"%"}]`,
			`"messages":[{"role":"user","content":[{"type":"text","text":"%"}]}]`,
			`"messages":[{"content":"%","role":"tool"}]`,
		} {
			body := func(text string) string {
				return `{"model":"m",` + strings.Replace(form, "%", text, 1) + `,"stream":true,"stream_options":{"include_usage":true},"max_tokens":7}`
			}
			got, _, bad := Apply(nil, []byte(body(c.in)), Options{})
			if bad != nil || string(got) != body(c.want) {
				t.Errorf("%s: %v\n got  %s\n want %s", name, bad, got, body(c.want))
			}
		}
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		members string
		want    Report
	}{
		{`"a":1`, Report{Model: "m", Limit: 7, Choices: 1}},
		{`"max_completion_tokens":50000,"n":3`, Report{Model: "m", Limit: 4096, Choices: 3, Changed: true}},
		{`"max_completion_tokens":5`, Report{Model: "m", Limit: 5, Choices: 1}},
		{tool(strings.Repeat("x", 300)), Report{Model: "m", Limit: 7, Choices: 1, Tools: 1, Descriptions: 1, Changed: true}},
	} {
		_, got, bad := Apply(nil, []byte(full(c.members)), Options{})
		if bad != nil || got != c.want {
			t.Errorf("%s: %v\n got  %+v\n want %+v", c.members, bad, got, c.want)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, fields string }{
		{``, "body"},
		{`{`, "body"},
		{`[]`, "body"},
		{`{"model":"m"`, "body"},
		{`{` + hello + `}{`, "body"},
		{`{}`, "model messages"},
		{`{"model":1,"messages":{}}`, "model messages"},
		{`{"model":"","messages":[]}`, "model messages"},
		{`{"Model":"m","Messages":[]}`, "model messages"},
		{`{"model":"m","messages":[1,{"role":"user"},{"role":"wizard","content":"x"},{"content":"x"},{"role":"user","content":7}]}`,
			"messages[0] messages[1].content messages[2].role messages[3].role messages[4].content"},
		{`{"model":"m","messages":[{"role":"user","content":null},{"role":"assistant"},{"role":"user","content":["x"]}]}`,
			"messages[0].content messages[2].content[0]"},
		{full(`"max_completion_tokens":"9"`), "max_completion_tokens"},
		{full(`"max_completion_tokens":0`), "max_completion_tokens"},
		{full(`"max_tokens":-1,"max_completion_tokens":1.5,"n":129`), "max_tokens max_completion_tokens n"},
		{full(`"tools":{},"functions":[1]`), "tools functions[0]"},
		{full(`"x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200)), "body"},
		{full(strings.Repeat(`"model":"m",`, 100) + `"z":0`), "body"},
		{full(strings.Repeat(`"Model":"m",`, 100) + `"z":0`), "body"},
	} {
		dst, _, bad := Apply([]byte("kept"), []byte(c.in), Options{})
		if bad == nil || bad.Code != decision.InvalidRequest {
			t.Errorf("%s: %v", c.in, bad)
			continue
		}
		var fields []string
		for _, d := range bad.Details {
			fields = append(fields, d.Field)
		}
		if got := strings.Join(fields, " "); got != c.fields || string(dst) != "kept" {
			t.Errorf("%s: fields %s, dst %s", c.in, got, dst)
		}
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	_, _, bad := Apply(nil, make([]byte, DefaultMaxBytes+1), Options{})
	if bad == nil || bad.Code != decision.TooLarge {
		t.Errorf("got %v", bad)
	}
}

func TestDetailsAreBounded(t *testing.T) {
	t.Parallel()
	_, _, bad := Apply(nil, []byte(`{"model":"m","messages":[`+strings.Repeat("0,", 1000)+`0]}`), Options{})
	if bad == nil || len(bad.Details) != maxDetails {
		t.Errorf("got %d details", len(bad.Details))
	}
}
