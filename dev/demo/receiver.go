package demo

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// last is the event with which the tour ends.
const last = "recording.completed"

// receiver is an endpoint for webhooks on this machine.
type receiver struct {
	secret string
	mu     sync.Mutex
	stream string        // whose events are shown: the account may have others on air
	ended  chan struct{} // closed when last has arrived
	seen   map[string]bool
	wrong  int // deliveries whose signature does not hold
	say    func(format string, args ...any)
}

// listen opens a receiver and subscribes it. A stack that may not call this
// machine refuses the subscription: the tour then goes on without webhooks.
func (t *tour) listen(ctx context.Context) (stop func(), err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	r := &receiver{secret: "demo " + rand.Text(), ended: make(chan struct{}), seen: map[string]bool{}, say: t.say}
	server := &http.Server{Handler: r, ReadTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }() // ends with Close
	var made struct {
		ID string `json:"id"`
	}
	err = t.call(ctx, http.MethodPost, "/v1/webhooks", map[string]any{"url": "http://" + l.Addr().String() + "/hooks", "secret": r.secret,
		"events": []string{"stream.*", "viewer.*", "recording.completed"}, "ordered": true, "description": "sluice demo"}, &made)
	if refused, ok := errors.AsType[*refusal](err); ok && refused.code == "invalid_request" {
		t.say("1. No webhooks   this stack does not call private addresses. To see them, start it with\n" +
			"                 SLUICE_WEBHOOK_ALLOW_CIDRS=127.0.0.1/32 make up")
		return func() { server.Close() }, nil
	}
	if err != nil {
		server.Close()
		return nil, err
	}
	t.receiver = r
	t.say("1. A receiver    subscription %s sends what happens to http://%s/hooks, signed", made.ID, l.Addr())
	return func() {
		// Also after an interrupt: a subscription that nobody answers would be left.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := t.call(ctx, http.MethodDelete, "/v1/webhooks/"+made.ID, nil, nil); err != nil {
			t.say("the subscription %s is left behind: %v", made.ID, err)
		}
		server.Close()
	}, nil
}

// ServeHTTP takes one delivery: 401 when its signature does not hold.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxAnswer))
	right := err == nil && holds(r.secret, body, req.Header.Get("X-Service-Signature"))
	var e struct {
		ID     string         `json:"id"`
		Event  string         `json:"event"`
		Stream string         `json:"stream_id"`
		Data   map[string]any `json:"data"`
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !right || json.Unmarshal(body, &e) != nil {
		r.wrong++
		r.say("   webhook       refused: its signature does not hold")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.WriteHeader(http.StatusNoContent)
	if r.seen[e.ID] || e.Stream != r.stream {
		return // delivered again, or of another stream
	}
	r.seen[e.ID] = true
	r.say("   webhook       %s %-26s signature right  %s", time.Now().UTC().Format("15:04:05.000Z"), e.Event, brief(e.Data))
	if e.Event == last {
		close(r.ended)
	}
}

// follow says whose events are to be shown.
func (r *receiver) follow(stream string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stream = stream
}

// holds checks the hexadecimal HMAC-SHA256 of body in constant time.
func holds(secret string, body []byte, signature string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	given, err := hex.DecodeString(signature)
	return err == nil && hmac.Equal(given, mac.Sum(nil))
}

// brief shows what is telling of an event's data.
func brief(data map[string]any) string {
	var out string
	for _, name := range []string{"protocol", "current_viewers", "duration", "total_viewers", "resolution", "file_size", "error_code"} {
		switch v := data[name].(type) {
		case string:
			out += name + "=" + v + " "
		case float64:
			out += name + "=" + strconv.FormatFloat(v, 'f', -1, 64) + " "
		}
	}
	return out
}

// heard waits for the last webhook.
func (t *tour) heard(ctx context.Context) error {
	if t.receiver == nil {
		return nil
	}
	select {
	case <-t.receiver.ended:
	case <-time.After(patience):
		return errors.New("the webhook " + last + " does not arrive")
	case <-ctx.Done():
		return ctx.Err()
	}
	t.receiver.mu.Lock()
	defer t.receiver.mu.Unlock()
	if t.receiver.wrong > 0 {
		return fmt.Errorf("%d webhooks had a wrong signature", t.receiver.wrong)
	}
	t.say("8. All heard     %d webhooks, in order, each signature right", len(t.receiver.seen))
	return nil
}
