package upstream

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/runtime/chat"
)

// serve starts a provider and returns it with the requests that it gets.
func serve(t *testing.T, c Config, path string, answer http.HandlerFunc) (*Provider, chan *http.Request) {
	t.Helper()
	asked := make(chan *http.Request, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		asked <- r
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	c.BaseURL = s.URL + path
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p, asked
}

func text(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}
}

// all reads a stream up to its end.
func all(t *testing.T, p *Provider, r chat.Request) (string, error) {
	t.Helper()
	s, err := p.Stream(t.Context(), r)
	if err != nil {
		return "", err
	}
	defer s.Close()
	var list []string
	for {
		data, err := s.Next()
		if err != nil {
			return strings.Join(list, "|"), err
		}
		list = append(list, string(data))
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	both := `{"max_tokens":1024,"max_completion_tokens":5,"x":1}`
	theirs, ours := chat.Caller{Bearer: "abc"}, chat.Caller{Bearer: "slk_abc", Signed: true}
	for name, c := range map[string]struct {
		config                 Config
		base                   string
		caller                 chat.Caller
		path, authorized, body string
	}{
		"the caller's key":               {Config{}, "/v1", theirs, "/v1/chat/completions", "Bearer abc", both},
		"a configured key":               {Config{Key: "ours"}, "/v1/", ours, "/v1/chat/completions", "Bearer ours", both},
		"no key":                         {Config{}, "", chat.Caller{}, "/v1/chat/completions", "", both},
		"a key of ours":                  {Config{}, "", ours, "/v1/chat/completions", "", both},
		"a token of ours":                {Config{}, "", chat.Caller{Bearer: "ey.ey.abc", Signed: true}, "/v1/chat/completions", "", both},
		"a key of ours, without an edge": {Config{}, "", chat.Caller{Bearer: "slk_abc"}, "/v1/chat/completions", "", both},
		"a key of ours, sent on":         {Config{ForwardCredentials: true}, "", ours, "/v1/chat/completions", "Bearer slk_abc", both},
		"a path of its own":              {Config{}, "/openai/api", chat.Caller{}, "/openai/api/chat/completions", "", both},
		"one limit, in front":            {Config{OneLimit: true}, "", chat.Caller{}, "/v1/chat/completions", "", `{"max_completion_tokens":5,"x":1}`},
	} {
		p, asked := serve(t, c.config, c.base, text("text/event-stream", "data: [DONE]\n\n"))
		if _, err := all(t, p, chat.Request{Body: []byte(both), Caller: c.caller, ID: "req-1"}); !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
		r := <-asked
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path != c.path || r.Header.Get("Authorization") != c.authorized || string(body) != c.body ||
			r.Header.Get("X-Request-ID") != "req-1" || r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("%s: %s %v %s", name, r.URL.Path, r.Header, body)
		}
	}
}

// A provider with the operator's key is for callers whom an edge has judged, and
// is not even asked by others.
func TestOurKeyIsForSignedCallers(t *testing.T) {
	t.Parallel()
	p, asked := serve(t, Config{Key: "ours"}, "", text("text/event-stream", "data: [DONE]\n\n"))
	for _, bearer := range []string{"", "anything", "slk_abc"} {
		c := chat.Caller{Bearer: bearer}
		_, err := all(t, p, chat.Request{Body: []byte("{}"), Caller: c})
		_, listed := p.Models(t.Context(), c)
		if apierror.Code(err) != decision.AuthRequired || apierror.Code(listed) != decision.AuthRequired || len(asked) != 0 {
			t.Errorf("%q: %v, %v, asked %d times", bearer, err, listed, len(asked))
		}
	}
}

func TestOneLimit(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"max_completion_tokens":5,"max_tokens":9}`:       `{"max_completion_tokens":5}`,
		`{ "max_tokens":9 , "max_completion_tokens":5 }`:   `{ "max_completion_tokens":5 }`,
		`{"a":1,"max_tokens":9,"max_completion_tokens":5}`: `{"a":1,"max_completion_tokens":5}`,
		`{"max_tokens":9}`: `{"max_tokens":9}`,
		`{"max_tokens":9,"max_completion_tokens":null}`: `{"max_tokens":9,"max_completion_tokens":null}`,
	} {
		if got := string(oneLimit([]byte(in))); got != want {
			t.Errorf("%s becomes %s, want %s", in, got, want)
		}
	}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		contentType, body, want string
		err                     error
	}{
		"done":         {"text/event-stream; charset=utf-8", "data: 1\r\n\r\n: x\n\ndata:2\n\ndata: [DONE]\n\ndata: 3\n\n", "1|2", io.EOF},
		"not done":     {"text/event-stream", "data: 1\n\n", "1", io.ErrUnexpectedEOF},
		"an error":     {"text/event-stream", "event: error\ndata: {\"a\":1}\n\n", `{"error":{"a":1}}`, io.ErrUnexpectedEOF},
		"error, words": {"text/event-stream", "event: error\ndata: oh \"no\"\n\n", `{"error":"oh \"no\""}`, io.ErrUnexpectedEOF},
		"error inside": {"text/event-stream", "event: error\ndata: {\"error\":1}\n\n", `{"error":1}`, io.ErrUnexpectedEOF},
	} {
		p, _ := serve(t, Config{}, "", text(c.contentType, c.body))
		if got, err := all(t, p, chat.Request{Body: []byte("{}")}); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %s %v", name, got, err)
		}
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(text("text/event-stream", "data: 1\n\ndata: [DONE]\n\n"))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	p, err := New(Config{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := all(t, p, chat.Request{Body: []byte("{}")}); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d connections for 20 requests, one behind the other", n)
	}
}

// A provider that keeps its answer open behind [DONE] must not hold the request.
func TestAnswerThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	p, _ := serve(t, Config{}, "", func(w http.ResponseWriter, r *http.Request) {
		text("text/event-stream", "data: [DONE]\n\n")(w, r)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(over)
	})
	if _, err := all(t, p, chat.Request{Body: []byte("{}")}); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	<-over
}

func TestAnswersInOnePiece(t *testing.T) {
	t.Parallel()
	p, _ := serve(t, Config{}, "", text("application/json", `{"id":"c","created":1,"model":"m","object":"chat.completion","choices":[{"index":0,
		"message":{"role":"assistant","content":null,"tool_calls":[{"id":"a"},{"id":"b"}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1}}`))
	got, err := all(t, p, chat.Request{Body: []byte("{}")})
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	list := strings.Split(got, "|")
	if len(list) != 3 || !strings.Contains(list[0], `{"index":1,"id":"b"}`) || !strings.Contains(list[0], `"finish_reason":null`) ||
		!strings.Contains(list[1], `"finish_reason":"tool_calls"`) || !strings.Contains(list[2], `"choices":[]`) {
		t.Errorf("got %s", got)
	}
	for _, e := range list {
		if !json.Valid([]byte(e)) || !strings.Contains(e, `"object":"chat.completion.chunk"`) {
			t.Errorf("not a chunk: %s", e)
		}
	}
	p, _ = serve(t, Config{}, "", text("application/json", `{"error":{"message":"x"}}`))
	if got, _ := all(t, p, chat.Request{Body: []byte("{}")}); got != `{"error":{"message":"x"}}` {
		t.Errorf("an error: %s", got)
	}
	for _, body := range []string{``, `[]`, `{}`, `{"choices":[]}`} {
		p, _ := serve(t, Config{}, "", text("application/json", body))
		if _, err := all(t, p, chat.Request{Body: []byte("{}")}); apierror.Code(err) != decision.BadGateway {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func TestOurKeyIsNotTheCallersBusiness(t *testing.T) {
	t.Parallel()
	answer := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(401)
		_, _ = io.WriteString(w, `{"error":{"message":"Incorrect API key sk-ours"}}`)
	}
	p, _ := serve(t, Config{Key: "sk-ours"}, "", answer)
	_, err := all(t, p, chat.Request{Body: []byte("{}"), Caller: chat.Caller{Signed: true}})
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok || e.Code != decision.BadGateway || strings.Contains(err.Error(), "sk-ours") {
		t.Errorf("got %v", err)
	}
	if _, refused := errors.AsType[*chat.Refusal](err); refused {
		t.Error("another provider may do better")
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]int{"7": 7, "": 1, "soon": 1, "-5": 1, "999999": 3600} {
		p, _ := serve(t, Config{}, "", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", header)
			w.WriteHeader(429)
		})
		_, err := all(t, p, chat.Request{Body: []byte("{}")})
		if e, ok := errors.AsType[*apierror.Error](err); !ok || e.Code != decision.RateLimited || e.RetryAfter != want {
			t.Errorf("%q: %v", header, err)
		}
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	p, asked := serve(t, Config{}, "/v1", text("application/json", `{"object":"list","data":[{"id":"a","x":1},{"id":"b"}]}`))
	names, err := p.Models(t.Context(), chat.Caller{Bearer: "abc"})
	if r := <-asked; err != nil || strings.Join(names, " ") != "a b" || r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer abc" {
		t.Errorf("%v %v %v", names, err, r.Header)
	}
	p, _ = serve(t, Config{}, "", text("text/html", `<html>`))
	if _, err := p.Models(t.Context(), chat.Caller{}); apierror.Code(err) != decision.BadGateway {
		t.Errorf("nonsense: %v", err)
	}
	p, _ = serve(t, Config{}, "", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
	if _, err := p.Models(t.Context(), chat.Caller{}); apierror.Code(err) != decision.Unavailable {
		t.Errorf("503: %v", err)
	}
}

func TestBadAddresses(t *testing.T) {
	t.Parallel()
	for _, u := range []string{"", "host", "ftp://host", "http://", "http://host/v1?x=1", "http://host/#a", "http://a b", "://"} {
		if _, err := New(Config{BaseURL: u}); err == nil {
			t.Errorf("%q is accepted", u)
		}
	}
}
