package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/filters/caps/jsonscan"
	"sluice.dev/sluice/platform/http/sse"
	"sluice.dev/sluice/platform/limits/growth"
	"sluice.dev/sluice/runtime/chat/tokens"
)

// script is a stream of given events.
type script [][]byte

func (s *script) Next() ([]byte, error) {
	if len(*s) == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	next := (*s)[0]
	*s = (*s)[1:]
	if string(next) == "[DONE]" {
		return nil, io.EOF
	}
	return next, nil
}

func (s *script) Ready() bool  { return false }
func (s *script) Close() error { return nil }

// play relays events, one a line, and returns what the client gets.
func play(text string, limit int) ([]string, Usage) {
	s := script(bytes.Split([]byte(text), []byte("\n")))
	rec := httptest.NewRecorder()
	out := sse.NewWriter(rec)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	r := &relay{
		request: Request{Body: []byte(`{"messages":[{"role":"user","content":"hi"}]}`)},
		stream:  &s, out: out, cancel: cancel, head: head{`"id"`, "1", `"m"`},
		meter: tokens.Meter{Limit: limit}, keepAlive: time.Hour, idle: time.Hour,
	}
	first, err := s.Next()
	if err != nil {
		return nil, Usage{}
	}
	u := r.run(ctx, first)
	var list []string
	for in := sse.NewReader(rec.Body, 0); ; {
		e, err := in.Next()
		if err != nil {
			return list, u
		}
		list = append(list, string(e.Data))
	}
}

// FuzzRelay holds a stream to what every client relies on, whatever a provider
// sends: chunks that are JSON objects with id, object, model and choices; then
// either an error, or the usage in its two places and [DONE].
func FuzzRelay(f *testing.F) {
	const text = `{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"hello there"}}]}`
	for _, s := range []string{
		text + "\n" + `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n" + `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}` + "\n[DONE]",
		text + "\n[DONE]", text, `{"choices":[{"delta":{"content":"\ud83d\ude00\ud83d"},"finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":9}}`,
		text + "\n" + `{"error":{"message":"x"}}`, `{"error":null,"choices":[{}]}` + "\n[DONE]", `{"choices":[7,null,{"index":-1,"delta":[]}]}` + "\n[DONE]", `{"choices":[],"choices":{}}` + "\n[DONE]",
		`{"choices":[{"index":200,"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}},1]}}],"x-service-usage":{"prompt_tokens":1,"completion_tokens":1}}` + "\n[DONE]",
		`{"usage":null,"usage":{"prompt_tokens":-1,"completion_tokens":1e99},"choices":[]}` + "\n[DONE]", `{}` + "\n" + ` ` + "\n[DONE]", `{"id":null,"object":7,"model":[],"choices":[{"delta":{}}]}` + "\n[DONE]",
	} {
		f.Add(s, 0)
		f.Add(s, 1)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		for line := range bytes.SplitSeq([]byte(text), []byte("\n")) {
			growth.Linear(t, len(line), eventCost, 16<<10, func() { parse(line, new(seen)) })
		}
		list, u := play(text, limit)
		if len(list) == 0 {
			return // it was over before it began
		}
		if u.Prompt < 0 || u.Completion < 0 {
			t.Fatalf("%q costs %+v", text, u)
		}
		last := list[len(list)-1]
		failed := strings.HasPrefix(last, `{"error":`)
		if !failed && (last != "[DONE]" || len(list) < 3) {
			t.Fatalf("%q ends with %q", text, list)
		}
		for i, e := range list[:len(list)-1] {
			checkChunk(t, text, e, failed, len(list)-2-i)
		}
	})
}

// eventCost is what an event may allocate for each of its bytes: its texts, while
// they grow, and an edit with its text for each choice.
const eventCost = 24

// An event costs in proportion to its length, whatever its shape.
func TestEventsAreReadInProportion(t *testing.T) {
	many := func(n int, of string) string { return strings.TrimSuffix(strings.Repeat(of+",", n/(len(of)+1)), ",") }
	in := func(delta string) string { return `{"choices":[{"index":0,"delta":` + delta + `}]}` }
	for name, shape := range map[string]func(n int) string{
		"blanks inside":   func(n int) string { return `{"choices":[` + strings.Repeat(" ", n) + `{"delta":{}}]}` },
		"a long text":     func(n int) string { return in(`{"content":"` + strings.Repeat("x", n) + `"}`) },
		"escapes":         func(n int) string { return in(`{"content":"` + strings.Repeat(`\u00e9`, n/6) + `"}`) },
		"lone surrogates": func(n int) string { return in(`{"content":"` + strings.Repeat(`\ud800`, n/6) + `"}`) },
		"many texts":      func(n int) string { return in(`{"x":[` + many(n, `"a"`) + `]}`) },
		"many calls": func(n int) string {
			return in(`{"tool_calls":[` + many(n, `{"id":"a","function":{"arguments":"b"}}`) + `]}`)
		},
		"many parts": func(n int) string { return in(`{"content":[` + many(n, `{}`) + `]}`) },
		"sounds":     func(n int) string { return in(`{"audio":[` + many(n, `{"data":"a"}`) + `]}`) },
		"one name":   func(n int) string { return in(`{` + many(n, `"content":"a"`) + `}`) },
		"deltas":     func(n int) string { return `{"choices":[{` + many(n, `"delta":{"content":"a"}`) + `}]}` },
		"choices":    func(n int) string { return `{"choices":[` + many(n, `{}`) + `]}` },
		"usages": func(n int) string {
			return `{"choices":[],` + many(n, `"usage":{"prompt_tokens":1,"completion_tokens":1}`) + `}`
		},
		"a long name":       func(n int) string { return `{"` + strings.Repeat(`\u0061`, n/6) + `":1,"choices":[]}` },
		"a long number":     func(n int) string { return `{"choices":[{"index":` + strings.Repeat("9", n) + `}]}` },
		"too deep":          func(n int) string { return `{"x":` + strings.Repeat("[", n) },
		"nothing but quote": func(n int) string { return strings.Repeat(`"`, n) },
		"no UTF-8":          func(n int) string { return in(`{"content":"` + strings.Repeat("\xff", n) + `"}`) },
	} {
		for _, n := range []int{32 << 10, 128 << 10} {
			data := []byte(shape(n))
			growth.Linear(t, len(data), eventCost, 16<<10, func() {
				c, ok := parse(data, new(seen))
				if ok {
					c.usage()
					c.normalize(head{`"id"`, "1", `"m"`})
				}
			})
			if t.Failed() {
				t.Fatal(name)
			}
		}
	}
}

// checkChunk checks the event that is fromEnd events before [DONE].
func checkChunk(t *testing.T, text, event string, failed bool, fromEnd int) {
	t.Helper()
	var c map[string]json.RawMessage // which does not fold case, as a struct would
	if err := json.Unmarshal([]byte(event), &c); err != nil {
		t.Fatalf("%q gives %q: %v", text, event, err)
	}
	if c["id"] == nil || string(c["object"]) != `"chat.completion.chunk"` || c["model"] == nil || !strings.HasPrefix(string(c["choices"]), "[") {
		t.Fatalf("%q gives %q", text, event)
	}
	used := c["usage"] != nil && string(c["usage"]) != "null"
	if used != (!failed && fromEnd == 0) || (c[usageMarker] != nil) != (!failed && fromEnd == 1) {
		t.Fatalf("%q gives %q %d before the end", text, event, fromEnd)
	}
}

func TestUsageObjects(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}`:           `{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}`,
		`{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"x":[1.0]}`: `{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"x":[1.0]}`,
		`{"prompt_tokens":1,"completion_tokens":2}`:                            `{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}`,
		`{"prompt_tokens":1,"completion_tokens":2,"total_tokens":9}`:           `{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}`,
		`{"prompt_tokens":1e1,"completion_tokens":2}`:                          `{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}`,
		`{"completion_tokens":2}`:                                              "", `{"prompt_tokens":"1","completion_tokens":2}`: "", `{"prompt_tokens":-1,"completion_tokens":2}`: "", `[]`: "", `7`: "",
	} {
		u, ok := parseUsage([]byte(text), jsonscan.Root([]byte(text)))
		if ok != (want != "") || ok && u.JSON() != want {
			t.Errorf("%s: %v %s", text, ok, u.JSON())
		}
	}
	if got := (Usage{Prompt: 1, Completion: 2, Estimated: true}).JSON(); got != `{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"estimated":true}` {
		t.Errorf("estimated: %s", got)
	}
}
