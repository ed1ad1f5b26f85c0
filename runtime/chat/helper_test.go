package chat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/http/sse"
	"sluice.dev/sluice/runtime/access"
	"sluice.dev/sluice/runtime/chat"
	"sluice.dev/sluice/runtime/chat/upstream"
)

const ask = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`

// quiet keeps failures that tests provoke out of the log.
var quiet = httpapi.Adapter{Log: slog.New(slog.DiscardHandler)}

// provider is a model server that records what it is asked.
type provider struct {
	*httptest.Server
	asked chan string // bodies
}

func newProvider(t *testing.T, answer http.HandlerFunc) *provider {
	t.Helper()
	p := &provider{asked: make(chan string, 100)}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.asked <- string(body)
		answer(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func serve(h http.HandlerFunc) *httptest.Server { return httptest.NewServer(h) }

// events answers with a stream of these, each in a write of its own.
func events(list ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range list {
			_, _ = io.WriteString(w, "data: "+e+"\n\n")
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// status answers with an error.
func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func (p *provider) target(t *testing.T, models ...string) chat.Target {
	t.Helper()
	u, err := upstream.New(upstream.Config{BaseURL: p.URL})
	if err != nil {
		t.Fatal(err)
	}
	return chat.Target{Name: p.URL, Provider: u, Models: models}
}

// runtime serves c over real connections.
func runtime(t *testing.T, c chat.Config, targets ...chat.Target) *httptest.Server {
	t.Helper()
	c.Pool, c.Adapter = chat.NewPool(targets, nil), quiet
	s := httptest.NewServer(access.Guard{Standalone: true}.Require(chat.NewHandler(c)))
	t.Cleanup(s.Close)
	return s
}

// withCaller serves c to an account, as if behind an edge.
func withCaller(t *testing.T, c chat.Config, targets ...chat.Target) *httptest.Server {
	t.Helper()
	c.Pool, c.Adapter = chat.NewPool(targets, nil), quiet
	h := chat.NewHandler(c)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(identity.With(r.Context(), identity.Caller{Account: "acct_1", Key: "key_1", Plan: "pro"})))
	}))
	t.Cleanup(s.Close)
	return s
}

// reply is an answer whose body the test closes at its end.
type reply struct {
	StatusCode int
	Header     http.Header
	Body       io.Reader
}

func post(t *testing.T, url, body string, header ...string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer theirs")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return reply{resp.StatusCode, resp.Header, resp.Body}
}

// read returns the data of all events in a stream.
func read(t *testing.T, r io.Reader) []string {
	t.Helper()
	var list []string
	for in := sse.NewReader(r, 0); ; {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatalf("behind %q: %v", list, err)
		}
		list = append(list, string(e.Data))
	}
}

// chunk is what a client reads.
type chunk struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Model   string `json:"model"`
	Created *int64 `json:"created"`
	Choices []struct {
		Index *int `json:"index"`
		Delta struct {
			Role    string  `json:"role"`
			Content *string `json:"content"`
		} `json:"delta"`
		Finish *string `json:"finish_reason"`
	} `json:"choices"`
	Usage  *usage `json:"usage"`
	Marker *usage `json:"x-service-usage"`
	Error  *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

type usage struct {
	Prompt     int  `json:"prompt_tokens"`
	Completion int  `json:"completion_tokens"`
	Total      int  `json:"total_tokens"`
	Estimated  bool `json:"estimated"`
}

// result is a whole answer, checked against the rules that hold for each.
type result struct {
	text   string
	finish string
	usage  usage
	chunks []chunk
}

// complete reads a whole stream and fails the test if it does not end as
// contract 8.7 says: a finish chunk with the usage under its marker, the usage
// once more in an event without choices, then [DONE].
func complete(t *testing.T, r io.Reader) result {
	t.Helper()
	list := read(t, r)
	if len(list) < 3 || list[len(list)-1] != "[DONE]" {
		t.Fatalf("the stream does not end with [DONE]: %q", list)
	}
	var res result
	for _, e := range list[:len(list)-1] {
		var c chunk
		if err := json.Unmarshal([]byte(e), &c); err != nil {
			t.Fatalf("%q: %v", e, err)
		}
		if c.ID == "" || c.Object != "chat.completion.chunk" || c.Model == "" || c.Choices == nil {
			t.Errorf("a chunk lacks what clients need: %s", e)
		}
		for _, choice := range c.Choices {
			if choice.Index == nil {
				t.Errorf("a choice has no index: %s", e)
			}
			if choice.Delta.Content != nil {
				res.text += *choice.Delta.Content
			}
			if choice.Finish != nil {
				res.finish = *choice.Finish
			}
		}
		res.chunks = append(res.chunks, c)
	}
	checkEnd(t, &res)
	return res
}

func checkEnd(t *testing.T, res *result) {
	t.Helper()
	n := len(res.chunks)
	for i, c := range res.chunks {
		if (c.Usage != nil) != (i == n-1) || (c.Marker != nil) != (i == n-2) {
			t.Fatalf("usage in the wrong place: chunk %d of %d", i, n)
		}
	}
	finish, trailing := res.chunks[n-2], res.chunks[n-1]
	if len(finish.Choices) == 0 || finish.Choices[0].Finish == nil || len(trailing.Choices) != 0 {
		t.Errorf("the stream ends wrongly: %+v %+v", finish, trailing)
	}
	if *finish.Marker != *trailing.Usage || trailing.Usage.Total != trailing.Usage.Prompt+trailing.Usage.Completion {
		t.Errorf("usages differ: %+v %+v", finish.Marker, trailing.Usage)
	}
	if first := res.chunks[0].Choices; len(first) > 0 && first[0].Delta.Role != "assistant" {
		t.Errorf("the first delta has no role")
	}
	res.usage = *trailing.Usage
}

// failure reads an error envelope.
func failure(t *testing.T, resp reply) (code, message string) {
	t.Helper()
	var c chunk
	if err := json.NewDecoder(resp.Body).Decode(&c); err != nil || c.Error == nil {
		t.Fatalf("status %d without an envelope: %v", resp.StatusCode, err)
	}
	return c.Error.Code, c.Error.Message
}

// ledger remembers what it is told.
type ledger struct {
	mu       sync.Mutex
	reserved []int
	settled  chan chat.Usage
	refuse   error
}

func newLedger() *ledger { return &ledger{settled: make(chan chat.Usage, 10)} }

func (l *ledger) Reserve(_ context.Context, _ identity.Caller, tokens int) (chat.Reservation, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reserved = append(l.reserved, tokens)
	return l, l.refuse
}

func (l *ledger) Settle(ctx context.Context, _ string, u chat.Usage) error {
	l.settled <- u
	return ctx.Err()
}

func requestID(s string) []string { return []string{httpapi.RequestIDHeader, s} }

func contains(t *testing.T, r io.Reader, want string) {
	t.Helper()
	buf, all := make([]byte, 1024), []byte(nil)
	for !bytes.Contains(all, []byte(want)) {
		n, err := r.Read(buf)
		if all = append(all, buf[:n]...); err != nil && !bytes.Contains(all, []byte(want)) {
			t.Fatalf("%q and then %v, want %q", all, err, want)
		}
	}
}
