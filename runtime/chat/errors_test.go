package chat_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/runtime/chat"
)

func TestErrorsBeforeTheFirstByte(t *testing.T) {
	t.Parallel()
	words := `{"error":{"message":"no such luck","type":"x"}}`
	for name, c := range map[string]struct {
		answer  http.HandlerFunc
		status  int
		code    string
		message string
	}{
		"400":               {status(400, words), 400, "invalid_request", "no such luck"},
		"401":               {status(401, words), 502, "bad_gateway", "refused the runtime's key"}, // no key of the caller's went there
		"404":               {status(404, `{"detail":"gone"}`), 404, "not_found", "gone"},
		"413":               {status(413, ""), 413, "request_too_large", "The provider failed."},
		"429":               {status(429, words), 429, "rate_limit_exceeded", "no such luck"},
		"500":               {status(500, "<html>"), 502, "bad_gateway", "The provider failed."},
		"503":               {status(503, `{"message":"busy"}`), 503, "service_unavailable", "busy"},
		"504":               {status(504, ""), 504, "gateway_timeout", "The provider failed."},
		"a redirect":        {status(302, ""), 502, "bad_gateway", ""},
		"an empty stream":   {events(), 502, "bad_gateway", ""},
		"an error as first": {events(words), 502, "bad_gateway", "no such luck"},
		"an error as text":  {events(`{"error":"bad"}`), 502, "bad_gateway", "bad"},
		"a named error event": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "event: error\ndata: {\"message\":\"bad\"}\n\n")
		}, 502, "bad_gateway", "bad"},
		"an answer of nonsense": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "application/json") }, 502, "bad_gateway", ""},
	} {
		l := newLedger()
		rt := withCaller(t, chat.Config{Ledger: l}, newProvider(t, c.answer).target(t))
		resp := post(t, rt.URL, ask)
		code, message := failure(t, resp)
		if resp.StatusCode != c.status || code != c.code || !strings.Contains(message, c.message) {
			t.Errorf("%s: %d %s %q", name, resp.StatusCode, code, message)
		}
		if got := resp.Header.Get("Retry-After") != ""; got != (c.status == 429 || c.status == 503) {
			t.Errorf("%s: Retry-After %v", name, got)
		}
		if u := <-l.settled; u.Completion != 0 {
			t.Errorf("%s: charged %+v", name, u)
		}
	}
}

func TestErrorsInTheStream(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then    string
		message string
	}{
		"an error":         {`{"error":{"message":"overloaded"}}`, "overloaded"},
		"error in a chunk": {`{"choices":[{"index":0,"delta":{},"finish_reason":"error"}],"error":{"message":"overloaded"}}`, "overloaded"},
		"nonsense":         {`{"choices":`, "not a chunk"},
		"not an object":    {`[1]`, "not a chunk"},
		"it breaks off":    {hel, "broke off"},
	} {
		l := newLedger()
		rt := withCaller(t, chat.Config{Ledger: l}, newProvider(t, events(role, hel, c.then)).target(t))
		resp := post(t, rt.URL, ask, requestID("req-7")...)
		list := read(t, resp.Body)
		last := list[len(list)-1]
		var got struct {
			Error struct{ Code, Message, Type, Request_ID string }
		}
		if err := json.Unmarshal([]byte(last), &got); err != nil || got.Error.Code != "bad_gateway" ||
			!strings.Contains(got.Error.Message, c.message) || got.Error.Request_ID != "req-7" {
			t.Errorf("%s: the stream ends with %s", name, last)
		}
		if list[1] != hel {
			t.Errorf("%s: what came before is lost: %q", name, list)
		}
		if u := <-l.settled; u.Completion == 0 || !u.Estimated {
			t.Errorf("%s: charged %+v for what was produced", name, u)
		}
	}
}

func TestInvalidRequestsNeverReachTheProvider(t *testing.T) {
	t.Parallel()
	p := newProvider(t, events(stop, done))
	rt := runtime(t, chat.Config{MaxBody: 1000}, p.target(t))
	for body, want := range map[string]int{
		``: 400, `{`: 400, `[]`: 400, `{"model":"m"}`: 400, `{"model":"m","messages":[]}`: 400, ask + `x`: 400,
		"\xff": 400, strings.Repeat(" ", 1001): 413,
	} {
		resp := post(t, rt.URL, body)
		if _, _ = failure(t, resp); resp.StatusCode != want {
			t.Errorf("%.40q: %d", body, resp.StatusCode)
		}
	}
	if resp := post(t, rt.URL, ask, "Content-Encoding", "gzip"); resp.StatusCode != 415 {
		t.Errorf("gzip: %d", resp.StatusCode)
	}
	if resp := post(t, rt.URL, ask, "Authorization", ""); resp.StatusCode != 401 {
		t.Errorf("without a token: %d", resp.StatusCode)
	}
	if len(p.asked) != 0 {
		t.Errorf("the provider was asked %q", <-p.asked)
	}
}

func TestTooLargeIsSaidBeforeTheBodyIsRead(t *testing.T) {
	t.Parallel()
	rt := runtime(t, chat.Config{MaxBody: 1000}, newProvider(t, events(stop, done)).target(t))
	body, never := io.Pipe()
	defer never.Close()
	req, err := http.NewRequestWithContext(t.Context(), "POST", rt.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = 1001
	req.Header.Set("Authorization", "Bearer x")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if code, _ := failure(t, reply{resp.StatusCode, resp.Header, resp.Body}); resp.StatusCode != 413 || code != "request_too_large" {
		t.Errorf("%d %s", resp.StatusCode, code)
	}
}

func TestChunkedBodiesAreBounded(t *testing.T) {
	t.Parallel()
	rt := runtime(t, chat.Config{MaxBody: 1000}, newProvider(t, events(stop, done)).target(t))
	req, err := http.NewRequestWithContext(t.Context(), "POST", rt.URL, io.MultiReader(strings.NewReader(strings.Repeat(" ", 5000))))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer x")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 413 {
		t.Errorf("%d", resp.StatusCode)
	}
}

func TestUnknownModel(t *testing.T) {
	t.Parallel()
	rt := runtime(t, chat.Config{}, newProvider(t, events(stop, done)).target(t, "other", "gpt-*"))
	resp := post(t, rt.URL, ask)
	if code, _ := failure(t, resp); resp.StatusCode != 404 || code != "not_found" {
		t.Errorf("%d %s", resp.StatusCode, code)
	}
}

func TestBudgetIsAskedFirst(t *testing.T) {
	t.Parallel()
	l := newLedger()
	l.refuse = &apierror.Error{Code: decision.QuotaUsed}
	p := newProvider(t, events(stop, done))
	rt := withCaller(t, chat.Config{Ledger: l}, p.target(t))
	resp := post(t, rt.URL, strings.Replace(ask, "{", `{"max_tokens":10,"n":2,`, 1))
	if code, _ := failure(t, resp); resp.StatusCode != 403 || code != "BILLING_002" || len(p.asked) != 0 {
		t.Errorf("%d %s, the provider was asked %d times", resp.StatusCode, code, len(p.asked))
	}
	if n := l.reserved[0]; n < 20+len("user hi") || n > 60 {
		t.Errorf("reserved %d", n)
	}
}

func TestSilentProviders(t *testing.T) {
	t.Parallel()
	hang := func(list ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			events(list...)(w, r)
			<-r.Context().Done()
		}
	}
	t.Run("never begins", func(t *testing.T) {
		t.Parallel()
		rt := runtime(t, chat.Config{FirstEvent: time.Millisecond}, newProvider(t, hang()).target(t))
		resp := post(t, rt.URL, ask)
		if code, _ := failure(t, resp); resp.StatusCode != 504 || code != "gateway_timeout" {
			t.Errorf("%d %s", resp.StatusCode, code)
		}
	})
	t.Run("falls silent", func(t *testing.T) {
		t.Parallel()
		rt := runtime(t, chat.Config{KeepAlive: time.Millisecond, Idle: 5 * time.Millisecond}, newProvider(t, hang(role, hel)).target(t))
		resp := post(t, rt.URL, ask)
		list := read(t, resp.Body)
		if last := list[len(list)-1]; !strings.Contains(last, "gateway_timeout") {
			t.Errorf("ends with %s", last)
		}
	})
	t.Run("does not end", func(t *testing.T) {
		t.Parallel()
		rt := runtime(t, chat.Config{KeepAlive: time.Millisecond}, newProvider(t, hang(role, hel, stop)).target(t))
		if res := complete(t, post(t, rt.URL, ask).Body); res.text != "Hel" || !res.usage.Estimated {
			t.Errorf("%+v", res)
		}
	})
	t.Run("thinks", func(t *testing.T) {
		t.Parallel()
		rt := runtime(t, chat.Config{KeepAlive: time.Millisecond}, newProvider(t, hang(role)).target(t))
		contains(t, post(t, rt.URL, ask).Body, ": keep-alive\n\n")
	})
}
