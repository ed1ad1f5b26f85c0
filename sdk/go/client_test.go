package sluice

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// script is a server that gives one answer after another, the last one for ever.
type script struct {
	answers []http.HandlerFunc
	seen    []*http.Request
	bodies  []string
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	s.seen, s.bodies = append(s.seen, r), append(s.bodies, string(b))
	s.answers[min(len(s.seen), len(s.answers))-1](w, r)
}

// client is one of a server that answers so, and the pauses that it made.
func client(t *testing.T, answers ...http.HandlerFunc) (*Client, *script, *[]time.Duration) {
	t.Helper()
	s := &script{answers: answers}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c := New(server.URL+"/", "slk_test", WithHTTPClient(server.Client()))
	pauses := new([]time.Duration)
	c.pause = func(ctx context.Context, d time.Duration) error { *pauses = append(*pauses, d); return ctx.Err() }
	return c, s, pauses
}

func says(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// hangsUp closes the connection without an answer, or in the middle of one.
func hangsUp(part string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if part != "" {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, part)
			_ = http.NewResponseController(w).Flush()
		}
		panic(http.ErrAbortHandler)
	}
}

const hook = `{"id":"wh_1","url":"https://example.com/hooks","events":["*"],"status":"active"}`

func TestACallSaysWhoCallsAndWhat(t *testing.T) {
	t.Parallel()
	c, s, _ := client(t, says(200, hook))
	got, err := c.GetWebhook(t.Context(), "wh/1")
	if err != nil || got.ID != "wh_1" {
		t.Fatal(got, err)
	}
	r := s.seen[0]
	if r.RequestURI != "/v1/webhooks/wh%2F1" || r.Header.Get("Authorization") != "Bearer slk_test" || r.Header.Get("User-Agent") != "sluice-go/"+Version {
		t.Error(r.RequestURI, r.Header)
	}
}

// What is safe to repeat is repeated after what passes, no sooner than the server asks;
// nothing else is.
func TestWhatIsRepeated(t *testing.T) {
	t.Parallel()
	const busy = `{"error":{"code":"rate_limit_exceeded","message":"m"}}`
	list := func(c *Client) error { _, err := c.ListWebhooks(t.Context(), nil); return err }
	create := func(c *Client) error { _, err := c.CreateWebhook(t.Context(), WebhookCreate{}); return err }
	change := func(c *Client) error { _, err := c.UpdateWebhook(t.Context(), "wh_1", WebhookUpdate{}); return err }
	remove := func(c *Client) error { return c.DeleteWebhook(t.Context(), "wh_1") }
	chat := func(c *Client) error {
		_, err := c.CreateChatCompletion(t.Context(), ChatCompletionRequest{Model: "echo-1"})
		return err
	}
	own := func(c *Client) error {
		_, err := c.Do(t.Context(), "POST", "/orders", nil, map[string]int{"n": 1})
		return err
	}
	for name, test := range map[string]struct {
		call    func(*Client) error
		answers []http.HandlerFunc
		tries   int
		fails   bool
	}{
		"a list after 429":               {list, []http.HandlerFunc{says(429, busy, "Retry-After", "7"), says(200, `{}`)}, 2, false},
		"a list after 502, 503 and 504":  {list, []http.HandlerFunc{says(502, ""), says(503, ""), says(504, ""), says(200, `{}`)}, 4, false},
		"a list whose answer breaks off": {list, []http.HandlerFunc{hangsUp(""), hangsUp(`{"data`), says(200, `{}`)}, 3, false},
		"a list, not for ever":           {list, []http.HandlerFunc{says(503, "")}, 4, true},
		"not a list after 500":           {list, []http.HandlerFunc{says(500, "")}, 1, true},
		"not a list after 404":           {list, []http.HandlerFunc{says(404, "")}, 1, true},
		"not after more than a minute":   {list, []http.HandlerFunc{says(429, busy, "Retry-After", "61")}, 1, true},
		"a create after 503":             {create, []http.HandlerFunc{says(503, ""), says(201, hook)}, 2, false},
		"a create whose answer was lost": {create, []http.HandlerFunc{hangsUp(""), says(409, "", "Retry-After", "1"), says(201, hook)}, 3, false},
		"not a create after a conflict":  {create, []http.HandlerFunc{says(409, "")}, 1, true},
		"a delete after 504":             {remove, []http.HandlerFunc{says(504, ""), says(204, "")}, 2, false},
		"a delete that had its effect":   {remove, []http.HandlerFunc{hangsUp(""), says(404, "")}, 2, false},
		"not a delete of nothing":        {remove, []http.HandlerFunc{says(404, "")}, 1, true},
		"a delete that was only refused": {remove, []http.HandlerFunc{says(429, busy), says(404, "")}, 2, true},
		"not a change":                   {change, []http.HandlerFunc{says(503, "")}, 1, true},
		"not a completion":               {chat, []http.HandlerFunc{says(429, busy)}, 1, true},
		"not a POST of your own API":     {own, []http.HandlerFunc{says(503, "")}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s, pauses := client(t, test.answers...)
			if err := test.call(c); (err != nil) != test.fails {
				t.Error(err)
			}
			if len(s.seen) != test.tries || len(*pauses) != test.tries-1 {
				t.Errorf("%d tries, pauses %v", len(s.seen), *pauses)
			}
			for i, r := range s.seen {
				if key := r.Header.Get("Idempotency-Key"); key != s.seen[0].Header.Get("Idempotency-Key") || s.bodies[i] != s.bodies[0] {
					t.Errorf("try %d differs: %q %s", i, key, s.bodies[i])
				}
			}
		})
	}
}

func TestCreatesHaveAKeyOfTheirOwn(t *testing.T) {
	t.Parallel()
	c, s, _ := client(t, says(201, hook))
	for _, opts := range [][]CallOption{nil, nil, {IdempotencyKey("order-7")}} {
		if _, err := c.CreateWebhook(t.Context(), WebhookCreate{}, opts...); err != nil {
			t.Fatal(err)
		}
	}
	var keys []string
	for _, r := range s.seen {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
	}
	if len(keys[0]) < 20 || keys[0] == keys[1] || keys[2] != "order-7" {
		t.Error(keys)
	}
	if _, err := c.ListWebhooks(t.Context(), nil); err != nil || s.seen[3].Header.Get("Idempotency-Key") != "" {
		t.Error("a list has a key", err)
	}
}

// Pauses are at least what the server asks for, and otherwise grow from half a second to
// eight; a part of them is random.
func TestPauses(t *testing.T) {
	t.Parallel()
	for n, most := range []time.Duration{500, 1000, 2000, 4000, 8000, 8000, 8000} {
		most *= time.Millisecond
		for range 100 {
			if d := backoff(n, 0); d < most/2 || d > most {
				t.Fatalf("after %d retries: %v", n, d)
			}
		}
	}
	several := map[time.Duration]bool{}
	for range 100 {
		d := backoff(3, 7*time.Second)
		if several[d] = true; d < 7*time.Second || d > 8*time.Second+1 {
			t.Fatal(d)
		}
	}
	if len(several) < 50 {
		t.Error("not random")
	}
	now := time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "30": 30 * time.Second, "-1": 0, "soon": 0, "99999999999999": 1 << 30 * time.Second, "99999999999999999999": 0, "Mon, 23 Nov 2026 06:01:00 GMT": time.Minute, "Mon, 23 Nov 2026 05:00:00 GMT": 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// A call whose context ends before the pause would is answered at once.
func TestNoPauseBehindTheDeadline(t *testing.T) {
	t.Parallel()
	c, s, pauses := client(t, says(503, "", "Retry-After", "30"))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := c.ListWebhooks(ctx, nil); err == nil || len(s.seen) != 1 || len(*pauses) != 0 {
		t.Error(err, len(s.seen), *pauses)
	}
}

func TestARefusalSaysAll(t *testing.T) {
	t.Parallel()
	c, _, _ := client(t, says(400, `{"error":{"code":"invalid_request","message":"The request is not valid.","details":[{"field":"url","issue":"is missing","expected":"an address"}],
		"request_id":"r-1","documentation_url":"https://x/docs/errors/invalid_request"}}`, "Retry-After", "3"))
	_, err := c.CreateWebhook(t.Context(), WebhookCreate{})
	var e *Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	if e.Status != 400 || e.Code != "invalid_request" || e.RequestID != "r-1" || e.RetryAfter != 3*time.Second || !strings.HasSuffix(e.DocumentationURL, "/invalid_request") ||
		!slices.Equal(e.Details, []Detail{{"url", "is missing", "an address"}}) {
		t.Errorf("%+v", e)
	}
	if want := "400 invalid_request: The request is not valid.; url is missing (expected an address) (request r-1)"; err.Error() != want {
		t.Error(err)
	}
}

// What stands between, such as another proxy, answers in a form of its own.
func TestARefusalOfSomebodyElse(t *testing.T) {
	t.Parallel()
	c, _, _ := client(t, says(418, "<html>", "X-Request-ID", "r-2"))
	_, err := c.ListWebhooks(t.Context(), nil)
	var e *Error
	if !errors.As(err, &e) || e.Status != 418 || e.Code != "" || e.RequestID != "r-2" || err.Error() != "418 I'm a teapot (request r-2)" {
		t.Error(err)
	}
}

// A call of one's own API has its answer as it is, and may have a key.
func TestDo(t *testing.T) {
	t.Parallel()
	c, s, _ := client(t, says(503, ""), says(200, "pong"))
	res, err := c.Do(t.Context(), "POST", "/orders", map[string][]string{"a": {"1"}}, map[string]int{"n": 1}, IdempotencyKey("k"), WithHeader("X-Own", "2"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	r := s.seen[1]
	if err != nil || string(b) != "pong" || r.URL.RawQuery != "a=1" || r.Header.Get("X-Own") != "2" || s.bodies[1] != `{"n":1}` {
		t.Error(string(b), err, r.URL, r.Header, s.bodies)
	}
	res, err = c.Do(t.Context(), "PUT", "/files/1", nil, strings.NewReader("bytes"), WithHeader("Content-Type", "text/plain"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if s.bodies[2] != "bytes" || s.seen[2].Header.Get("Content-Type") != "text/plain" {
		t.Error(s.bodies, s.seen[2].Header)
	}
}

// What comes in several forms is given as it comes; bytes are sent once, and no type of none.
func TestBytes(t *testing.T) {
	t.Parallel()
	c, s, _ := client(t, says(200, "WEBVTT", "Content-Type", "text/vtt"), says(503, ""))
	res, err := c.Captions(t.Context(), "audio/wav", strings.NewReader("RIFF"), &CaptionsParams{Format: "vtt", Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	r := s.seen[0]
	if err != nil || string(b) != "WEBVTT" || r.Header.Get("Accept") != "*/*" || r.Header.Get("Content-Type") != "audio/wav" || s.bodies[0] != "RIFF" || r.URL.RawQuery != "format=vtt&language=en" {
		t.Error(string(b), err, r.Header, s.bodies, r.URL)
	}
	if _, err := c.Captions(t.Context(), "", nil, &CaptionsParams{AssetID: "vod_1"}); err == nil || len(s.seen) != 2 || s.seen[1].Header["Content-Type"] != nil {
		t.Error(err, len(s.seen), s.seen[1].Header)
	}
}
