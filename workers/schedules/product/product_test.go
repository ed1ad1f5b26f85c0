package product

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/workers/schedules/definition"
)

var (
	secret = []byte("0123456789abcdef0123456789abcdef")
	start  = definition.Action{StreamID: "strm_1", Action: "start", Settings: map[string]string{"quality": "720p"}}
)

// client is a client of a product that answers in the given way.
func client(t *testing.T, h http.HandlerFunc) Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return Client{BaseURL: s.URL, Secret: secret, Now: func() time.Time { return time.Unix(1000, 0) }}
}

func TestActionsAreSignedInTheAccountsName(t *testing.T) {
	t.Parallel()
	var verify func(string) (identityheader.Caller, error)
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		by, err := verify(r.Header.Get(identityheader.Header))
		if err != nil || by.Account != "acct_1" || by.Plan != "pro" || by.Key != "schedule_1" || len(by.Scopes) != 1 || by.Scopes[0] != "streams:write" {
			t.Errorf("caller %+v, %v", by, err)
		}
		body, _ := io.ReadAll(r.Body)
		if r.Method != "POST" || r.URL.Path != "/internal/v1/streams/strm_1/actions" || string(body) != `{"action":"start","settings":{"quality":"720p"}}` {
			t.Errorf("%s %s %s", r.Method, r.URL.Path, body)
		}
		_, _ = io.WriteString(w, `{"stream_id":"strm_1","action":"started","status":"live","changed":true,"message":"Stream started"}`)
	})
	for product, f := range map[string]func(string) (identityheader.Caller, error){
		"": func(v string) (identityheader.Caller, error) { return identityheader.Verify([][]byte{secret}, v, 1001) },
		"media": func(v string) (identityheader.Caller, error) {
			return identityheader.VerifyFor([][]byte{secret}, "media", v, 1001)
		},
	} {
		c.Product, verify = product, f
		got, err := c.Act(t.Context(), Caller{Account: "acct_1", Plan: "pro", Schedule: "schedule_1"}, start)
		if err != nil || got != (Outcome{"strm_1", "started", "Stream started"}) {
			t.Errorf("%q: %+v %v", product, got, err)
		}
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status    int
		body      string
		code      decision.Code
		transient bool
	}{
		"not found":           {404, `{"error":{"code":"not_found","message":"No such stream."}}`, decision.NotFound, false},
		"state":               {409, `{"error":{"code":"conflict","message":"It is live."}}`, decision.Conflict, false},
		"plan":                {429, `{"error":{"code":"STREAM_003","message":"Too many."}}`, decision.Stream003, true},
		"overload":            {503, `{"error":{"code":"service_unavailable","message":"Busy."}}`, decision.Unavailable, true},
		"no envelope":         {500, `oops`, decision.BadGateway, true},
		"no code":             {404, `{"error":{}}`, decision.BadGateway, true},
		"success, unreadable": {200, `[]`, decision.BadGateway, true},
		"a redirect":          {302, ``, decision.BadGateway, true},
	} {
		_, err := client(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		}).Act(t.Context(), Caller{}, start)
		if code := apierror.Code(err); code != c.code || Transient(err) != c.transient {
			t.Errorf("%s: %s transient %v, want %s %v", name, code, Transient(err), c.code, c.transient)
		}
	}
}

func TestNoAnswerIsTransient(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	c := client(t, func(http.ResponseWriter, *http.Request) { <-release })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Act(ctx, Caller{}, start); apierror.Code(err) != decision.BadGateway || !Transient(err) {
		t.Errorf("%v", err)
	}
}

// FuzzRead holds that no answer, however strange, is both an outcome and an
// error, or neither.
func FuzzRead(f *testing.F) {
	f.Add(200, `{"stream_id":"s","action":"started"}`)
	f.Add(404, `{"error":{"code":"not_found"}}`)
	f.Add(500, `null`)
	f.Fuzz(func(t *testing.T, status int, body string) {
		out, err := read[Outcome](status, []byte(body))
		if err != nil && out != (Outcome{}) {
			t.Errorf("%+v and %v", out, err)
		}
		if err == nil && !json.Valid([]byte(body)) {
			t.Errorf("%q was understood", body)
		}
	})
}

func TestAnotherProductIsCalledWhenOneIsGone(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	c := client(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"action":"started"}`) })
	there := strings.TrimPrefix(c.BaseURL, "http://")
	c.BaseURL = gone.URL
	c.HTTP = FirstOf([]string{gone.Listener.Addr().String(), there})
	if got, err := c.Act(t.Context(), Caller{Account: "acct_1"}, start); err != nil || got.Action != "started" {
		t.Errorf("%+v %v", got, err)
	}
	c.HTTP = FirstOf([]string{gone.Listener.Addr().String()})
	if _, err := c.Act(t.Context(), Caller{Account: "acct_1"}, start); apierror.Code(err) != decision.BadGateway {
		t.Errorf("with none there: %v", err)
	}
}
