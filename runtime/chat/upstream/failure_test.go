package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/filters/caps/jsonscan"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/limits/growth"
	"sluice.dev/sluice/runtime/chat"
)

// TestWhatAProviderSays has the forms in which providers word their errors.
func TestWhatAProviderSays(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"error":{"message":"a","type":"b","code":null}}`: "a",
		`{"error":"a"}`:                     "a",
		`{"message":"a"}`:                   "a",
		`{"detail":"a"}`:                    "a",
		`{"detail":{"message":"a"}}`:        "a",
		`{"error":{"code":5},"detail":"a"}`: "a",
		`{"detail":[{"msg":"a"}]}`:          "",
		`{"error":{}}`:                      "",
		`[]`:                                "",
		`<html>`:                            "",
		``:                                  "",
		`{"message":"` + strings.Repeat("x", 100<<10) + `"}`: "", // cut, so no JSON any more
	} {
		if got := message(strings.NewReader(body)); got != want {
			t.Errorf("%.60s says %q, want %q", body, got, want)
		}
	}
}

func TestQuotesAreBounded(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                         "The provider failed.",
		"bad":                      "The provider failed: bad",
		"a\xffb":                   "The provider failed: ab",
		strings.Repeat("é", 5_000): "The provider failed: " + strings.Repeat("é", 500),
	} {
		if got := chat.ProviderMessage(in); got != want {
			t.Errorf("%.20q becomes %.80q", in, got)
		}
	}
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]struct {
		code    decision.Code
		callers bool
	}{
		400: {decision.InvalidRequest, true}, 401: {decision.InvalidKey, true}, 402: {decision.PaymentRequired, true}, 403: {decision.ScopeMissing, true},
		404: {decision.NotFound, true}, 408: {decision.GatewayTimeout, false}, 409: {decision.BadGateway, false}, 413: {decision.TooLarge, true},
		418: {decision.BadGateway, false}, 422: {decision.InvalidRequest, true}, 429: {decision.RateLimited, false}, 500: {decision.BadGateway, false},
		502: {decision.BadGateway, false}, 503: {decision.Unavailable, false}, 504: {decision.GatewayTimeout, false}, 529: {decision.Unavailable, false},
		301: {decision.BadGateway, false},
	} {
		p, _ := serve(t, Config{}, "", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		_, err := all(t, p, chat.Request{Body: []byte("{}"), Caller: chat.Caller{Bearer: "theirs"}})
		_, refused := errors.AsType[*chat.Refusal](err)
		if apierror.Code(err) != want.code || refused != want.callers {
			t.Errorf("%d: %v, refused %v", status, err, refused)
		}
	}
}

// broken is a transport that never reaches anybody.
type broken struct{ err error }

func (b broken) RoundTrip(*http.Request) (*http.Response, error) { return nil, b.err }

func TestUnreachable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want decision.Code
	}{
		"refused":  {&net.OpError{Op: "dial", Err: errors.New("connection refused")}, decision.BadGateway},
		"timeout":  {&net.DNSError{IsTimeout: true}, decision.GatewayTimeout},
		"deadline": {context.DeadlineExceeded, decision.GatewayTimeout},
		"reset":    {io.ErrUnexpectedEOF, decision.BadGateway},
	} {
		p, err := New(Config{BaseURL: "http://user:secret@host", Key: "sk-ours", Client: &http.Client{Transport: broken{c.err}}})
		if err != nil {
			t.Fatal(err)
		}
		signed := chat.Caller{Signed: true}
		_, err = p.Stream(t.Context(), chat.Request{Body: []byte("{}"), Caller: signed})
		if apierror.Code(err) != c.want || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "sk-ours") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err = p.Models(t.Context(), signed); apierror.Code(err) != c.want {
			t.Errorf("%s, models: %v", name, err)
		}
	}
}

// A redirect would carry the key to whoever it names.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere, asked := serve(t, Config{}, "", text("text/event-stream", "data: 1\n\n"))
	p, _ := serve(t, Config{Key: "sk-ours"}, "", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.BaseURL, http.StatusTemporaryRedirect)
	})
	if _, err := all(t, p, chat.Request{Body: []byte("{}"), Caller: chat.Caller{Signed: true}}); apierror.Code(err) != decision.BadGateway {
		t.Errorf("got %v", err)
	}
	if len(asked) > 0 {
		t.Error("the redirect was followed")
	}
}

func TestTheClientsEndIsTheProviders(t *testing.T) {
	t.Parallel()
	begun, over := make(chan struct{}), make(chan struct{})
	p, _ := serve(t, Config{}, "", func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		close(over)
	})
	ctx, leave := context.WithTimeout(t.Context(), time.Minute)
	go func() {
		<-begun
		leave()
	}()
	if _, err := p.Stream(ctx, chat.Request{Body: []byte("{}")}); err == nil {
		t.Error("a stream of a provider that never answered")
	}
	<-over
}

func TestMessagesOfWholeAnswers(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"role":"assistant","content":"x"}`:            `{"role":"assistant","content":"x"}`,
		`{"tool_calls":[]}`:                             `{"tool_calls":[]}`,
		`{"tool_calls":[{"id":"a"},{}],"b":1.0}`:        `{"tool_calls":[{"index":0,"id":"a"},{"index":1}],"b":1.0}`,
		`{"tool_calls":[{"id":"a","index":5},7]}`:       `{"tool_calls":[{"id":"a","index":5},7]}`,
		`{"tool_calls":7}`:                              `{"tool_calls":7}`,
		`7`:                                             `{}`,
		`{"content":"a","tool_calls":[],"content":"b"}`: `{"content":"a","tool_calls":[],"content":"b"}`,
	} {
		a := answer{data: []byte(in)}
		if got, ok := a.numbered(jsonscan.Root(a.data)); !ok || got != want {
			t.Errorf("%s becomes %s, want %s", in, got, want)
		}
	}
}

// An answer has at most as many choices, and a choice at most as many calls, as
// a request can lead to: each costs a chunk, or an edit.
func TestWholeAnswersAreBounded(t *testing.T) {
	t.Parallel()
	many := func(n int, of string) string { return strings.TrimSuffix(strings.Repeat(of+",", n), ",") }
	for name, c := range map[string]struct {
		body string
		ok   bool
	}{
		"choices":          {`{"choices":[` + many(maxChoices, `{}`) + `]}`, true},
		"too many choices": {`{"choices":[` + many(maxChoices+1, `{}`) + `]}`, false},
		"calls":            {`{"choices":[{"message":{"tool_calls":[` + many(maxCalls, `{}`) + `]}}]}`, true},
		"too many calls":   {`{"choices":[{"message":{"tool_calls":[` + many(maxCalls+1, `{}`) + `]}}]}`, false},
		"too deep":         {`{"choices":[{"message":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `}]}`, false},
	} {
		if _, err := whole(strings.NewReader(c.body)); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzWhole holds what becomes of an answer to chunks that are JSON, at a cost
// in proportion to the answer.
func FuzzWhole(f *testing.F) {
	for _, s := range []string{`{"choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}],"usage":{}}`, `{"error":7}`, `{"choices":[{}],"choices":null}`,
		`{"id":"` + strings.Repeat("x", 3000) + `","choices":[{"message":{"tool_calls":[{},{"index":1}]}},{}]}`, `{"choices":[{"a":1,"a":"\u00e9","message":[]}]} ` + strings.Repeat(" ", 1000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var events [][]byte
		var err error
		// Each byte is read (twice while the buffer grows), compacted, copied and
		// joined once; a choice costs two heads.
		growth.Linear(t, len(body), 32, 64<<10+2*maxChoices*4*maxHead, func() { events, err = whole(strings.NewReader(body)) })
		if (err == nil) == (len(events) == 0) {
			t.Fatalf("%q: %d events, %v", body, len(events), err)
		}
		for _, e := range events {
			if !json.Valid(e) {
				t.Fatalf("%q gives %q", body, e)
			}
		}
	})
}
