package caps

import (
	"strings"
	"testing"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/limits/growth"
)

// What Apply says it allocates: multiple bytes for each of the body's, and a
// constant.
const (
	multiple = 8
	constant = 16 << 10
)

func fill(text string, n int) string { return strings.Repeat(text, max(1, n/len(text))) }

// shapes are bodies of about n bytes in which a careless parser goes over the
// same bytes, or notes the same thing, again and again.
var shapes = map[string]func(n int) string{
	"blanks behind":          func(n int) string { return full(`"x":0`) + fill(" ", n) },
	"blanks before":          func(n int) string { return fill("\n", n) + full(`"x":0`) },
	"blanks in the messages": func(n int) string { return content(`[` + fill(" ", n) + `]`) },
	"blanks by commas":       func(n int) string { return full(`"x":[0` + fill(" , 0", n) + `]`) },
	"only blanks":            func(n int) string { return fill(" ", n) },
	"depth":                  func(n int) string { return full(`"x":[` + fill(fill("[", 100)+fill("]", 100)+",", n) + `0]`) },
	"one name repeated":      func(n int) string { return full(fill(`"x":1,`, n) + `"x":1`) },
	"the model repeated":     func(n int) string { return full(fill(`"model":"m",`, n) + `"x":1`) },
	"in another case":        func(n int) string { return full(fill(`"Model":"m",`, n) + `"x":1`) },
	"unknown names":          func(n int) string { return full(fill(`"m":1,"n":2,"":3,`, n) + `"x":1`) },
	"a long name":            func(n int) string { return full(`"` + fill("m", n) + `":1`) },
	"names in escapes":       func(n int) string { return full(fill(`"\u006dodel":1,`, n) + `"x":1`) },
	"a long model":           func(n int) string { return `{"model":"` + fill("m", n) + `","messages":[]}` },
	"usage repeated":         func(n int) string { return full(`"stream_options":{` + fill(`"include_usage":0,`, n) + `"x":1}`) },
	"many messages":          func(n int) string { return messagesOf(fill(`{"role":"user","content":"x"},`, n)) },
	"no messages":            func(n int) string { return messagesOf(fill(`0,`, n)) },
	"empty messages":         func(n int) string { return messagesOf(fill(`{},`, n)) },
	"many roles":             func(n int) string { return messagesOf(`{` + fill(`"role":"x",`, n) + `"content":"x"},`) },
	"many contents":          func(n int) string { return messagesOf(`{` + fill(`"content":7,`, n) + `"role":"user"},`) },
	"many parts":             func(n int) string { return content(`[` + fill(`{"text":"x"},`, n) + `{}]`) },
	"no parts":               func(n int) string { return content(`[` + fill(`0,`, n) + `{}]`) },
	"many texts of a part":   func(n int) string { return content(`[{` + fill(`"text":"x",`, n) + `"x":0}]`) },
	"many tools":             func(n int) string { return full(`"tools":[` + fill(`{},`, n) + `{}]`) },
	"no tools":               func(n int) string { return full(`"tools":[` + fill(`0,`, n) + `{}]`) },
	"many descriptions": func(n int) string {
		return full(`"tools":[{` + fill(`"description":"`+fill("x", 201)+`",`, n) + `"x":0}]`)
	},
	"a long description": func(n int) string { return full(tool(fill("é", n))) },
	"escapes":            func(n int) string { return content(`"` + fill(`\n\\\"`, n) + `"`) },
	"lone surrogates":    func(n int) string { return content(`"` + fill(`\ud83d`, n) + `"`) },
	"a long number":      func(n int) string { return full(`"max_completion_tokens":` + fill("9", n)) },
	"a long exponent":    func(n int) string { return full(`"max_completion_tokens":1e` + fill("9", n)) },
	"zeros":              func(n int) string { return full(`"max_completion_tokens":0.` + fill("0", n) + `1`) },
	"commas":             func(n int) string { return full(`"x":[0` + fill(",", n) + `]`) },
	"no UTF-8":           func(n int) string { return content(`"` + fill("\xff", n) + `"`) },
	"many reminders": func(n int) string {
		return content(`"` + fill(`<system-reminderavailable_skills</system-reminder>`, n) + `"`)
	},
	"reminders in reminders": func(n int) string {
		return content(`"` + fill(`<system-reminder`, n/2) + `available_skills` + fill(`</system-reminder>`, n/2) + `"`)
	},
	"reminders never closed": func(n int) string { return content(`"` + fill(`<system-reminder`, n) + `"`) },
	"only ends of reminders": func(n int) string { return content(`"<system-reminder` + fill(`</system-reminder>`, n) + `"`) },
	"nearly reminders":       func(n int) string { return content(`"` + fill(`<system-reminde`, n) + `"`) },
	"nearly, in escapes":     func(n int) string { return content(`"` + fill(`\u003csystem-reminde`, n) + `"`) },
}

func messagesOf(list string) string {
	return `{"model":"m","messages":[` + list + `{"role":"user","content":"hi"}]}`
}

func content(value string) string {
	return `{"model":"m","messages":[{"role":"user","content":` + value + `}]}`
}

// Bodies of every shape, so long that nothing which takes time by the square of
// them comes to an end before the test runs out of time.
func TestEveryShapeIsLinear(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			body := []byte(shape(4 << 20))
			growth.Linear(t, len(body), multiple, constant, func() { _, _, _ = Apply(nil, body, Options{}) })
			_, _, bad := Apply(nil, body, Options{})
			if bad == nil {
				return
			}
			if answer := bad.AppendEnvelope(nil, strings.Repeat("r", 64), "https://"+strings.Repeat("d", 2000)); len(answer) > 16<<10 {
				t.Errorf("an answer of %d bytes", len(answer))
			}
		})
	}
}

func TestCountsAreBounded(t *testing.T) {
	t.Parallel()
	parts := func(n int) string { return content(`[` + strings.Repeat(`{"text":"x"},`, n-1) + `{}]`) }
	chats := func(n int) string { return messagesOf(strings.Repeat(`{"role":"user","content":"x"},`, n-1)) }
	list := func(name string, n int) string { return full(`"` + name + `":[` + strings.Repeat(`{},`, n-1) + `{}]`) }
	skills := func(n int) string {
		return content(`"` + strings.Repeat(`<system-reminder>available_skills</system-reminder>`, n) + `"`)
	}
	for name, c := range map[string]struct{ body, field string }{
		"messages at the bound":  {chats(maxMessages), ""},
		"a message more":         {chats(maxMessages + 1), "messages"},
		"parts at the bound":     {parts(maxParts), ""},
		"a part more":            {parts(maxParts + 1), "messages"},
		"parts of two messages":  {strings.Replace(parts(maxParts), `[{"role"`, `[{"role":"user","content":[{}]},{"role"`, 1), "messages"},
		"tools at the bound":     {list("tools", maxTools), ""},
		"a tool more":            {list("tools", maxTools+1), "tools"},
		"functions at the bound": {list("functions", maxTools), ""},
		"a function more":        {list("functions", maxTools+1), "functions"},
		"reminders within":       {skills(maxEdits - 8), ""},
		"reminders beyond":       {skills(maxEdits + 1), "body"},
	} {
		_, _, bad := Apply(nil, []byte(c.body), Options{})
		if c.field == "" {
			if bad != nil {
				t.Errorf("%s: %v", name, bad.Details)
			}
			continue
		}
		if bad == nil || bad.Code != decision.InvalidRequest || len(bad.Details) != 1 || bad.Details[0].Field != c.field || bad.Details[0].Expected == "" {
			t.Errorf("%s: %+v", name, bad)
		}
	}
	if _, _, bad := Apply(nil, []byte(list("tools", 1000)), Options{StripTools: true}); bad != nil {
		t.Errorf("tools that are stripped are counted: %v", bad.Details)
	}
}
