package sender

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/workers/webhooks/signature"
)

var at = time.Unix(1_800_000_000, 0)

// answers plays the guarded client.
type answers struct {
	result outbound.Result
	err    error
	got    outbound.Request
}

func (a *answers) Do(_ context.Context, r outbound.Request) (outbound.Result, error) {
	a.got = r
	return a.result, a.err
}

func (a *answers) CheckURL(context.Context, string) error { return nil }

func send(t *testing.T, a *answers, secrets ...string) Response {
	t.Helper()
	r := Request{URL: "https://x.example/", EventID: "evt_1", Body: []byte("{}"), At: at}
	for _, s := range secrets {
		r.Secrets = append(r.Secrets, []byte(s))
	}
	return Send(t.Context(), a, r, func() time.Time { return at })
}

func TestRequestCarriesIdentityAndSignatures(t *testing.T) {
	t.Parallel()
	a := &answers{result: outbound.Result{Status: 204}}
	if r := send(t, a, "present", "former"); !r.OK() {
		t.Fatalf("%+v", r)
	}
	h := a.got.Header
	if h.Get("Content-Type") != "application/json" || h.Get("X-Service-Event-Id") != "evt_1" || h.Get("X-Service-Timestamp") != "1800000000" {
		t.Errorf("%v", h)
	}
	for _, secret := range []string{"present", "former"} {
		if err := signature.Verify([]byte(secret), h, []byte("{}"), at); err != nil {
			t.Errorf("%s: %v", secret, err)
		}
	}
	if h.Get(signature.Header) != signature.Body([]byte("present"), []byte("{}")) {
		t.Error("X-Service-Signature is not that of the present secret")
	}
}

func TestWithoutSecretNothingIsSigned(t *testing.T) {
	t.Parallel()
	a := &answers{result: outbound.Result{Status: 200}}
	send(t, a)
	if a.got.Header.Get(signature.Header) != "" || a.got.Header.Get(signature.StandardSignature) != "" {
		t.Errorf("%v", a.got.Header)
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	refused := &outbound.Failure{Reason: outbound.ReasonAddress, Cause: errors.New("10.0.0.1 is ours")}
	for name, c := range map[string]struct {
		a     answers
		ok    bool
		words string
	}{
		"a 2xx":                      {answers{result: outbound.Result{Status: 202}}, true, ""},
		"a redirect":                 {answers{result: outbound.Result{Status: 301}}, false, ""},
		"a 2xx that breaks off":      {answers{result: outbound.Result{Status: 200}, err: &outbound.Failure{Reason: outbound.ReasonTimeout}}, false, "no complete answer in time"},
		"a refused address":          {answers{err: refused}, false, "the host leads to an address that is not allowed"},
		"an error of another nature": {answers{err: errors.New("secret 10.0.0.1")}, false, "the request could not be made"},
	} {
		r := send(t, &c.a)
		if r.OK() != c.ok || r.Error != c.words || strings.Contains(r.Error, "10.0.0.1") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestRetryAfterIsRead(t *testing.T) {
	t.Parallel()
	r := send(t, &answers{result: outbound.Result{Status: 503, Header: http.Header{"Retry-After": {"90"}}}})
	if r.Outcome().RetryAfter != 90*time.Second {
		t.Errorf("%+v", r)
	}
}

func TestAnswerIsKeptWithinBounds(t *testing.T) {
	t.Parallel()
	h := http.Header{"A-Long": {strings.Repeat("é", 4000)}, "A-Nul": {"a\x00b"}}
	for i := range 100 {
		h["X-"+strings.Repeat("n", i+1)] = []string{"v"}
	}
	r := send(t, &answers{result: outbound.Result{Status: 200, Header: h, Body: []byte(strings.Repeat("\xff\x00", 4000))}})
	if len(r.Headers) > maxHeaders || len(r.Headers["A-Long"]) > maxHeaderValue+3 || strings.Contains(r.Headers["A-Nul"], "\x00") {
		t.Errorf("%d headers, %q", len(r.Headers), r.Headers["A-Nul"])
	}
	if len(r.Body) > maxBody || !utf8.Valid(r.Body) || strings.Contains(string(r.Body), "\x00") {
		t.Errorf("%d bytes: %q", len(r.Body), r.Body[:10])
	}
}

func FuzzText(f *testing.F) {
	f.Add([]byte("\xff\x00é"))
	f.Add([]byte(strings.Repeat("\xff", 2000)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got := text(b); len(got) > maxBody || !utf8.Valid(got) || strings.Contains(string(got), "\x00") {
			t.Errorf("%q", got)
		}
	})
}
