package chat_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"sluice.dev/sluice/runtime/chat"
)

// delta is a chunk of one choice with a delta.
func delta(d string) string {
	return `{"id":"c1","object":"chat.completion.chunk","created":5,"model":"m-1","choices":[{"index":0,"delta":` + d + `,"finish_reason":null}]}`
}

// choice is a chunk of one choice with other members than a delta.
func choice(members string) string {
	return `{"id":"c1","choices":[{"index":0,` + members + `}]}`
}

const phrase = "one two three four five six seven eight nine ten " // eleven tokens at most

// forms are the ways in which providers send what a model produced.
var forms = map[string]string{
	"content":                   delta(`{"content":"` + phrase + `"}`),
	"content in escapes":        delta(`{"content":"` + strings.ReplaceAll(phrase, " ", `\u0020`) + `"}`),
	"parts of content":          delta(`{"content":[{"type":"text","text":"` + phrase + `"}]}`),
	"texts as parts":            delta(`{"content":["` + phrase + `"]}`),
	"reasoning":                 delta(`{"reasoning":"` + phrase + `"}`),
	"reasoning_content":         delta(`{"reasoning_content":"` + phrase + `"}`),
	"reasoning in parts":        delta(`{"reasoning_details":[{"type":"reasoning.text","text":"` + phrase + `"}]}`),
	"a refusal":                 delta(`{"refusal":"` + phrase + `"}`),
	"a tool call":               delta(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":"` + phrase + `"}}]}`),
	"a custom tool's call":      delta(`{"tool_calls":[{"index":0,"type":"custom","custom":{"name":"f","input":"` + phrase + `"}}]}`),
	"arguments as an object":    delta(`{"tool_calls":[{"function":{"name":"f","arguments":{"id":"` + phrase + `"}}}]}`),
	"one call, not a list":      delta(`{"tool_calls":{"function":{"arguments":"` + phrase + `"}}}`),
	"an older function call":    delta(`{"function_call":{"name":"f","arguments":"` + phrase + `"}}`),
	"what is said":              delta(`{"audio":{"id":"audio_1","transcript":"` + phrase + `"}}`),
	"sound":                     delta(`{"audio":{"id":"audio_1","data":"` + strings.Repeat("A", 20<<10) + `"}}`),
	"a picture":                 delta(`{"images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", 20<<10) + `"}}]}`),
	"a member nobody knows":     delta(`{"x":[{"y":{"z":"` + phrase + `"}}]}`),
	"a delta that is a text":    choice(`"delta":"` + phrase + `"`),
	"a message":                 choice(`"message":{"role":"assistant","content":"` + phrase + `"}`),
	"a text, as of completions": choice(`"text":"` + phrase + `"`),
	"two deltas":                choice(`"delta":{"content":"` + phrase + `"},"delta":{}`),
	"a name in escapes":         choice(`"d\u0065lta":{"cont\u0065nt":"` + phrase + `"}`),
}

// TestEveryFormIsMetered has the caller leave behind hundred chunks, before the
// provider could say what they took.
func TestEveryFormIsMetered(t *testing.T) {
	t.Parallel()
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := make([]string, 100)
			for i := range list {
				list[i] = form
			}
			u := leaves(t, func(w http.ResponseWriter, r *http.Request) {
				events(append(append([]string{role}, list...), delta(`{"content":"the end"}`))...)(w, r)
				<-r.Context().Done()
			}, "the end")
			if u.Completion < 900 || u.Completion > 1300 || u.Prompt == 0 || !u.Estimated {
				t.Errorf("charged %+v for a hundred times ten words", u)
			}
		})
	}
}

// TestEveryFormIsCutAtTheLimit has a provider that does not hold to the limit.
func TestEveryFormIsCutAtTheLimit(t *testing.T) {
	t.Parallel()
	for name, form := range forms {
		l := newLedger()
		list := []string{role}
		for range 40 {
			list = append(list, form)
		}
		rt := withCaller(t, chat.Config{Ledger: l}, newProvider(t, events(append(list, stop, spent, done)...)).target(t))
		got := read(t, post(t, rt.URL, strings.Replace(ask, "{", `{"max_tokens":100,`, 1)).Body)
		if n := len(got); n > 16 || !strings.Contains(got[n-3], `"finish_reason":"length"`) || !strings.Contains(got[n-2], `"completion_tokens":100,`) {
			t.Errorf("%s: %d chunks, at last %q", name, n, got[max(0, n-3):])
		}
		if u := <-l.settled; u.Completion != 100 {
			t.Errorf("%s: charged %+v", name, u)
		}
	}
}

// leaves asks a provider, leaves once the answer has a text ("": as soon as the
// provider calls the answer's begin), and returns what was charged.
func leaves(t *testing.T, answer http.HandlerFunc, behind string) chat.Usage {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	l := newLedger()
	rt := withCaller(t, chat.Config{Ledger: l}, newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		if behind == "" {
			answer(w, r)
			leave()
			<-r.Context().Done()
			return
		}
		answer(w, r)
	}).target(t))
	req, err := http.NewRequestWithContext(ctx, "POST", rt.URL, strings.NewReader(strings.Replace(ask, "{", `{"max_tokens":100000,`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if behind == "" {
		if err == nil {
			resp.Body.Close()
			t.Fatal("answered")
		}
		return <-l.settled
	}
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	contains(t, resp.Body, behind)
	leave()
	return <-l.settled
}

// header answers with a status and a content type, and nothing behind.
func header(status int, contentType string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_ = http.NewResponseController(w).Flush()
	}
}

// TestWhoeverLeavesPaysThePrompt: a provider that was given the request is at
// work on it, whatever it has said yet.
func TestWhoeverLeavesPaysThePrompt(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"before the provider answers":        func(http.ResponseWriter, *http.Request) {},
		"behind its header":                  header(200, "text/event-stream"),
		"behind a header of another success": header(202, "text/event-stream"),
		"behind a comment": func(w http.ResponseWriter, r *http.Request) {
			header(200, "text/event-stream")(w, r)
			_, _ = io.WriteString(w, ": x\n\n")
		},
		"before an answer in one piece ended": header(200, "application/json"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if u := leaves(t, answer, ""); u.Prompt == 0 || u.Completion != 0 || !u.Estimated {
				t.Errorf("charged %+v, want the prompt", u)
			}
		})
	}
	t.Run("behind a first event that says nothing", func(t *testing.T) {
		t.Parallel()
		u := leaves(t, func(w http.ResponseWriter, r *http.Request) {
			events(role)(w, r)
			<-r.Context().Done()
		}, "assistant")
		if u.Prompt == 0 || u.Completion != 0 {
			t.Errorf("charged %+v, want the prompt", u)
		}
	})
}

// TestWhatBeganIsPaid has providers that accept a request and then fail, beside
// some that do not accept it.
func TestWhatBeganIsPaid(t *testing.T) {
	t.Parallel()
	bad := `{"error":{"message":"x"}}`
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		paid   bool
	}{
		"an empty stream":         {events(), true},
		"an error as first":       {events(bad), true},
		"an error behind a chunk": {events(role, bad), true},
		"nonsense":                {events("x"), true},
		"no JSON":                 {header(200, "application/json"), true},
		"another success":         {header(204, ""), true},
		"a refusal":               {status(400, bad), false},
		"too many requests":       {status(429, bad), false},
		"a failure":               {status(500, ""), false},
	} {
		l := newLedger()
		rt := withCaller(t, chat.Config{Ledger: l}, newProvider(t, c.answer).target(t))
		resp := post(t, rt.URL, ask)
		_, _ = io.Copy(io.Discard, resp.Body)
		if u := <-l.settled; (u.Prompt > 0) != c.paid || u.Completion != 0 || u.Refused != (resp.StatusCode != 200) {
			t.Errorf("%s: %d, charged %+v", name, resp.StatusCode, u)
		}
	}
	l := newLedger()
	gone := newProvider(t, events())
	target := gone.target(t)
	gone.Close()
	rt := withCaller(t, chat.Config{Ledger: l}, target)
	if resp := post(t, rt.URL, ask); resp.StatusCode != 502 {
		t.Errorf("nobody listens: %d", resp.StatusCode)
	}
	if u := <-l.settled; u.Total() != 0 {
		t.Errorf("nobody listens: charged %+v", u)
	}
}

// TestWholeAnswersAreMetered has a provider that does not stream and says no
// usage.
func TestWholeAnswersAreMetered(t *testing.T) {
	t.Parallel()
	for name, message := range map[string]string{
		"content":       `{"role":"assistant","content":"` + phrase + `"}`,
		"parts":         `{"content":[{"type":"text","text":"` + phrase + `"}]}`,
		"function call": `{"content":null,"function_call":{"name":"f","arguments":"` + phrase + `"}}`,
		"tool calls":    `{"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"` + phrase + `"}}]}`,
		"unknown":       `{"x":{"y":["` + phrase + `"]}}`,
	} {
		l := newLedger()
		rt := withCaller(t, chat.Config{Ledger: l}, newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"id":"c","model":"m","choices":[{"index":0,"message":`+message+`,"finish_reason":"stop"}]}`)
		}).target(t))
		read(t, post(t, rt.URL, ask).Body)
		if u := <-l.settled; u.Completion < 9 || u.Completion > 13 || u.Prompt == 0 {
			t.Errorf("%s: charged %+v", name, u)
		}
	}
}
