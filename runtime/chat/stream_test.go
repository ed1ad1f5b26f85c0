package chat_test

import (
	"strings"
	"testing"

	"sluice.dev/sluice/runtime/chat"
)

const (
	role   = `{"id":"c1","object":"chat.completion.chunk","created":5,"model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`
	hel    = `{"id":"c1","object":"chat.completion.chunk","created":5,"model":"m-1","choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}`
	lo     = `{"id":"c1","object":"chat.completion.chunk","created":5,"model":"m-1","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":null}]}`
	stop   = `{"id":"c1","object":"chat.completion.chunk","created":5,"model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	tokens = `{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}`
	spent  = `{"id":"c1","object":"chat.completion.chunk","created":5,"model":"m-1","choices":[],"usage":` + tokens + `}`
	done   = "[DONE]"
)

// with puts a usage on a chunk.
func with(c, usage string) string { return c[:len(c)-1] + `,"usage":` + usage + `}` }

// TestUsageIsTheSameForEveryProvider has the ends of streams that providers in
// use are known to send.
func TestUsageIsTheSameForEveryProvider(t *testing.T) {
	t.Parallel()
	said, guessed := usage{Prompt: 5, Completion: 2, Total: 7}, usage{Estimated: true}
	for name, c := range map[string]struct {
		events []string
		want   usage
	}{
		"a trailing event":              {[]string{role, hel, lo, stop, spent, done}, said},
		"on the finish chunk":           {[]string{role, hel, lo, with(stop, tokens), done}, said},
		"in both places":                {[]string{role, hel, lo, with(stop, tokens), spent, done}, said},
		"null on all others":            {[]string{with(role, "null"), with(hel, "null"), with(lo, "null"), with(stop, "null"), spent, done}, said},
		"growing on every chunk":        {[]string{with(role, `{"prompt_tokens":5,"completion_tokens":1}`), hel, with(lo, tokens), stop, done}, said},
		"without a total":               {[]string{role, hel, lo, stop, strings.Replace(spent, `,"total_tokens":7`, "", 1), done}, said},
		"with details":                  {[]string{role, hel, lo, stop, strings.Replace(spent, `:7}`, `:7,"prompt_tokens_details":{"cached_tokens":1}}`, 1), done}, said},
		"under the marker of a runtime": {[]string{role, hel, lo, stop[:len(stop)-1] + `,"x-service-usage":` + tokens + `}`, done}, said},
		"none":                          {[]string{role, hel, lo, stop, done}, guessed},
		"none, and no [DONE]":           {[]string{role, hel, lo, stop}, guessed},
		"none, and no finish":           {[]string{role, hel, lo, done}, guessed},
		"null":                          {[]string{role, hel, lo, stop, with(strings.Replace(spent, `,"usage":`+tokens, "", 1), "null"), done}, guessed},
	} {
		rt := runtime(t, chat.Config{}, newProvider(t, events(c.events...)).target(t))
		resp := post(t, rt.URL, ask)
		if ct := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || ct != "text/event-stream" {
			t.Fatalf("%s: %d %s", name, resp.StatusCode, ct)
		}
		res := complete(t, resp.Body)
		if res.text != "Hello" || res.finish != "stop" {
			t.Errorf("%s: %q, %s", name, res.text, res.finish)
		}
		if c.want.Estimated {
			c.want = res.usage
			if u := res.usage; !u.Estimated || u.Prompt < 2 || u.Prompt > 12 || u.Completion != 1 {
				t.Errorf("%s: estimated %+v", name, u)
			}
		}
		if res.usage != c.want {
			t.Errorf("%s: usage %+v, want %+v", name, res.usage, c.want)
		}
	}
}

func TestChunksAreMendedForClients(t *testing.T) {
	t.Parallel()
	for name, list := range map[string][]string{
		"without id, object and model": {`{"choices":[{"index":0,"delta":{"role":"assistant","content":"x"}}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, done},
		"another object":               {`{"object":"text_completion","choices":[{"index":0,"delta":{"role":"assistant","content":"x"}}]}`, stop, done},
		"without index":                {`{"id":"c","choices":[{"delta":{"role":"assistant","content":"x"}}]}`, `{"choices":[{"delta":{},"finish_reason":"stop"}]}`, done},
		"without role":                 {`{"id":"c","choices":[{"index":0,"delta":{"content":"x"}}]}`, stop, done},
		"delta empty, without role":    {`{"id":"c","choices":[{"index":0,"delta":{}}]}`, `{"choices":[{"index":0,"delta":{"content":"x"}}]}`, stop, done},
		"a chunk without choices":      {`{"id":"c","choices":[{"index":0,"delta":{"content":"x"}}]}`, `{"type":"ping"}`, `{"choices":null}`, stop, done},
		"a chunk with empty data":      {`{"id":"c","choices":[{"index":0,"delta":{"content":"x"}}]}`, ` `, stop, done},
	} {
		rt := runtime(t, chat.Config{}, newProvider(t, events(list...)).target(t))
		if res := complete(t, post(t, rt.URL, ask).Body); res.text != "x" {
			t.Errorf("%s: %q", name, res.text)
		}
	}
}

func TestWhatIsRightPassesAsItIs(t *testing.T) {
	t.Parallel()
	odd := `{ "id":"c1","object":"chat.completion.chunk","created":5.0,"model":"m-1","x":[1e2,"\u00e9"],"choices":[{"index":0,"delta":{"role":"assistant","content":"\/\ud83d\ude00"},"logprobs":{"a":null}}]}`
	calls := `{"id":"c1","object":"chat.completion.chunk","created":5,"model":"m-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":null}]}`
	rt := runtime(t, chat.Config{}, newProvider(t, events(odd, calls, stop, spent, done)).target(t))
	got := read(t, post(t, rt.URL, ask).Body)
	want := []string{odd, calls, stop[:len(stop)-1] + `,"x-service-usage":` + tokens + `}`, spent, done}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSeveralChoices(t *testing.T) {
	t.Parallel()
	choice := func(i, content, finish string) string {
		return `{"id":"c1","object":"chat.completion.chunk","created":5,"model":"m","choices":[{"index":` + i + `,"delta":{"content":"` + content + `"},"finish_reason":` + finish + `}]}`
	}
	rt := runtime(t, chat.Config{}, newProvider(t, events(
		choice("0", "a", "null"), choice("1", "b", "null"), choice("0", "", `"stop"`), choice("1", "c", "null"), choice("1", "", `"length"`), spent, done,
	)).target(t))
	res := complete(t, post(t, rt.URL, strings.Replace(ask, "{", `{"n":2,`, 1)).Body)
	if res.text != "abc" || res.finish != "length" || len(res.chunks) != 6 {
		t.Errorf("%q, %s, %d chunks", res.text, res.finish, len(res.chunks))
	}
	if r := res.chunks[1].Choices[0].Delta.Role; r != "assistant" {
		t.Errorf("the second choice begins with role %q", r)
	}
}

func TestProviderBeyondTheLimitIsCut(t *testing.T) {
	t.Parallel()
	word := `{"id":"c1","object":"chat.completion.chunk","created":5,"model":"m-1","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}`
	long := strings.Replace(word, " word", strings.Repeat(" word", 100), 1)
	call := `{"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"` + strings.Repeat("x y ", 50) + `"}}]}}]}`
	words := []string{role}
	for range 50 {
		words = append(words, word)
	}
	for name, c := range map[string]struct {
		events []string
		text   string
	}{
		"token by token": {append(words, with(stop, tokens), done), strings.Repeat(" word", 10)},
		"in one chunk":   {[]string{role, long, long, stop, spent, done}, strings.Repeat(" word", 10)},
		"a tool call":    {[]string{role, call, stop, spent, done}, ""},
	} {
		l := newLedger()
		rt := withCaller(t, chat.Config{Ledger: l}, newProvider(t, events(c.events...)).target(t))
		res := complete(t, post(t, rt.URL, strings.Replace(ask, "{", `{"max_tokens":10,`, 1)).Body)
		if res.text != c.text || res.finish != "length" || res.usage.Completion != 10 || !res.usage.Estimated {
			t.Errorf("%s: %q, %s, %+v", name, res.text, res.finish, res.usage)
		}
		if u := <-l.settled; u.Completion != 10 {
			t.Errorf("%s: charged %+v", name, u)
		}
	}
}
