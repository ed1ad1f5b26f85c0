package actors

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/bench/chaos/audit"
	"sluice.dev/sluice/bench/chaos/fleet"
	"sluice.dev/sluice/workers/payments/evm"
)

func TestWhichAnswersSettleARequest(t *testing.T) {
	t.Parallel()
	for status, again := range map[int]bool{0: true, 200: false, 201: false, 204: false, 400: false, 401: false, 404: false, 408: true, 409: true, 422: false, 425: true, 429: true, 500: true, 503: true, 504: true} {
		if got := (answer{status: status}).tryAgain(); got != again {
			t.Errorf("%d: try again %v, want %v", status, got, again)
		}
	}
}

// A try is noted with the edge that was asked, and without what tells one from
// another of its kind.
func TestJudge(t *testing.T) {
	t.Parallel()
	w := &World{Fleet: &fleet.Fleet{Edges: []fleet.Edge{{Name: "edge-1", Gateway: "https://127.0.0.1:1", Runtime: "https://127.0.0.1:2"}}}}
	for url, want := range map[string]audit.Try{
		"https://127.0.0.1:1/v1/streams?limit=1":       {Edge: "edge-1", What: "GET /v1/streams", Status: 401, Code: "x"},
		"https://127.0.0.1:2/v1/streams/strm_1/tokens": {Edge: "edge-1", What: "GET /v1/streams/{id}/tokens", Status: 401, Code: "x"},
	} {
		w.judge(request{method: http.MethodGet, url: url}, answer{status: 401, code: "x"})
		got := w.seen.Tries[len(w.seen.Tries)-1]
		if got.At.IsZero() {
			t.Error("nobody knows when")
		}
		if got.At = (time.Time{}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

func TestReadChat(t *testing.T) {
	t.Parallel()
	half := len(words) / 2
	text := func(s string) string { return `data: {"choices":[{"delta":{"content":"` + s + `"}}]}` + "\n\n" }
	const usage, done = `data: {"choices":[],"usage":{"total_tokens":7}}` + "\n\n", "data: [DONE]\n\n"
	for name, c := range map[string]struct {
		body  string
		want  audit.Chat
		total int64
	}{
		"whole":           {text(words[:half]) + ": still here\n\n" + text(words[half:]) + usage + done, audit.Chat{Done: true, Whole: true, Usage: true}, 7},
		"cut off":         {text(words[:half]), audit.Chat{}, 0},
		"cut off late":    {text(words) + usage, audit.Chat{Whole: true, Usage: true}, 7},
		"a hole":          {text(words[:half]) + usage + done, audit.Chat{Done: true, Usage: true}, 7},
		"without usage":   {text(words) + done, audit.Chat{Done: true, Whole: true}, 0},
		"half an event":   {text(words[:half]) + `data: {"choi`, audit.Chat{}, 0},
		"an empty answer": {"", audit.Chat{}, 0},
	} {
		got, total := readChat(&http.Response{Body: io.NopCloser(strings.NewReader(c.body))})
		if got != c.want || total != c.total {
			t.Errorf("%s: %+v %d", name, got, total)
		}
	}
}

func TestPaid(t *testing.T) {
	t.Parallel()
	receipt := func(text string) http.Header {
		return http.Header{"X-Payment-Response": {base64.StdEncoding.EncodeToString([]byte(text))}}
	}
	var p audit.Payment
	for _, a := range []answer{{status: 402}, {status: 503}, {status: 201, header: receipt(`{"success":true}`)}, {status: 201, header: receipt(`{"success":false}`)}, {status: 201}} {
		paid(&p, a)
	}
	if p.Served != 3 || p.Receipts != 1 {
		t.Errorf("%+v", p)
	}
}

// A payment is signed by its payer, for what was quoted.
func TestSign(t *testing.T) {
	t.Parallel()
	payer, err := evm.ParseKey(strings.Repeat("12", 32))
	if err != nil {
		t.Fatal(err)
	}
	till := till{domain: evm.Domain{Name: "USDC", Version: "2", Chain: 84532}, price: 77}
	one, err := base64.StdEncoding.DecodeString(till.sign(payer, time.Unix(1000, 0)))
	if err != nil {
		t.Fatal(err)
	}
	other, _ := base64.StdEncoding.DecodeString(till.sign(payer, time.Unix(1000, 0)))
	if bytes.Equal(one, other) {
		t.Error("two payments are the same one")
	}
	for _, want := range []string{`"value":"77"`, `"validBefore":"1040"`, payer.Address().String()} {
		if !strings.Contains(string(one), want) {
			t.Errorf("no %s in %s", want, one)
		}
	}
}

func TestTheFlappingRoute(t *testing.T) {
	t.Parallel()
	routes := []any{map[string]any{"name": "a"}, map[string]any{"name": "flapping"}, map[string]any{"name": "b"}}
	if rest := without(routes); len(rest) != 2 || len(without(rest)) != 2 {
		t.Errorf("%v", rest)
	}
}

// The receiver notes what it gets before it answers, signed or not.
func TestReceiver(t *testing.T) {
	t.Parallel()
	r := NewReceiver(1)
	t.Cleanup(r.Close)
	send := func(path, body string, headers ...string) int {
		t.Helper()
		req, err := http.NewRequest(http.MethodPost, "http://"+r.Addr()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("body"))
	send("/hooks", "body", "X-Service-Event-Id", "evt_1", "X-Service-Signature", hex.EncodeToString(mac.Sum(nil)))
	send("/hooks", "other", "X-Service-Event-Id", "evt_2", "X-Service-Signature", hex.EncodeToString(mac.Sum(nil)))
	send("/calls", "", "X-Service-Execution-Id", "exec_1")
	if send("/film.mp4", "") != http.StatusNotFound {
		t.Error("it has a film")
	}
	want := []audit.Hook{{Event: "evt_1", Body: sha256.Sum256([]byte("body")), Signed: true}, {Event: "evt_2", Body: sha256.Sum256([]byte("other"))}}
	if len(r.hooks) != 2 || r.hooks[0] != want[0] || r.hooks[1] != want[1] || len(r.calls) != 1 || r.calls[0].Execution != "exec_1" {
		t.Errorf("%+v %+v", r.hooks, r.calls)
	}
	unwell := 0
	for range 200 {
		if send("/calls", "") == http.StatusServiceUnavailable {
			unwell++
		}
	}
	if unwell == 0 || unwell > 50 {
		t.Errorf("it was unwell %d times of 200", unwell)
	}
}
