package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/filters/decision"
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
		301: {decision.BadGateway, false}, 204: {decision.BadGateway, false},
	} {
		p, _ := serve(t, Config{}, "", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		_, err := all(t, p, chat.Request{Body: []byte("{}")})
		_, refused := errors.AsType[*chat.Refusal](err)
		if controlplane.ErrorCode(err) != want.code || refused != want.callers {
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
		_, err = p.Stream(t.Context(), chat.Request{Body: []byte("{}")})
		if controlplane.ErrorCode(err) != c.want || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "sk-ours") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err = p.Models(t.Context(), ""); controlplane.ErrorCode(err) != c.want {
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
	if _, err := all(t, p, chat.Request{Body: []byte("{}")}); controlplane.ErrorCode(err) != decision.BadGateway {
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

func TestMessagesWithoutToolCallsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"role":"assistant","content":"x"}`:  `{"role":"assistant","content":"x"}`,
		`{"tool_calls":[]}`:                   `{"tool_calls":[]}`,
		`{"tool_calls":[{"id":"a"}],"b":1.0}`: `{"b":1.0,"tool_calls":[{"id":"a","index":0}]}`,
		`{"tool_calls":7}`:                    `{"tool_calls":7}`,
		``:                                    `{}`,
	} {
		var raw []byte
		if in != "" {
			raw = []byte(in)
		}
		if got := string(numbered(raw)); got != want {
			t.Errorf("%s becomes %s, want %s", in, got, want)
		}
	}
}
