package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

const webhookSecret = "a secret of the end-to-end test"

// hook is one request as a receiver got it.
type hook struct {
	header http.Header
	body   []byte
	at     time.Time // when it came
}

// receiver answers with a status that can be changed.
func receiver(t testing.TB) (url string, got chan hook, status *atomic.Int32) {
	t.Helper()
	got, status = make(chan hook, 1000), &atomic.Int32{}
	status.Store(http.StatusNoContent)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := time.Now()
		body, _ := io.ReadAll(r.Body)
		answer := int(status.Load()) // before the test hears of it, and changes what comes next
		got <- hook{r.Header, body, at}
		w.WriteHeader(answer)
	}))
	t.Cleanup(server.Close)
	return server.URL, got, status
}

// receive returns the next request, whose signature it checks.
func receive(t testing.TB, got chan hook) hook {
	t.Helper()
	select {
	case h := <-got:
		mac := hmac.New(sha256.New, []byte(webhookSecret))
		mac.Write(h.body)
		if want := hex.EncodeToString(mac.Sum(nil)); h.header.Get("X-Service-Signature") != want {
			t.Fatalf("signature %s, want %s", h.header.Get("X-Service-Signature"), want)
		}
		return h
	case <-time.After(patience):
		t.Fatal("no webhook arrives")
		return hook{}
	}
}

func (s *stack) subscribe(t testing.TB, url string, events ...string) string {
	t.Helper()
	r := call(t, http.MethodPost, s.url("/v1/webhooks"), s.dev["SLUICE_API_KEY"],
		map[string]any{"url": url, "events": events, "secret": webhookSecret, "description": t.Name()})
	wantStatus(t, r, http.StatusCreated)
	wantHeaders(t, r)
	made := into[struct{ ID, Secret, Status string }](t, r)
	if made.Secret != webhookSecret || made.Status != "active" {
		t.Fatalf("%+v", made)
	}
	return s.url("/v1/webhooks/" + made.ID)
}

// The real input: subscribe, let a stream be deleted, receive the event,
// signed, and find it in the log; a failure is retried after five seconds.
func TestWebhookThroughTheWholeStack(t *testing.T) {
	t.Parallel()
	s := lentStack(t)
	key := s.dev["SLUICE_API_KEY"]
	url, got, status := receiver(t)
	one := s.subscribe(t, url, "stream.*")
	t.Cleanup(func() { wantStatus(t, call(t, http.MethodDelete, one, key, nil), http.StatusNoContent) })

	r := call(t, http.MethodPost, one+"/test", key, nil)
	wantStatus(t, r, http.StatusOK)
	if v := into[struct{ Delivery struct{ Success bool } }](t, r); !v.Delivery.Success {
		t.Fatal(r.body)
	}
	receive(t, got)

	status.Store(http.StatusServiceUnavailable)
	made := s.createStream(t, key, "Short lived")
	wantStatus(t, call(t, http.MethodDelete, s.url("/v1/streams/"+made.ID), key, nil), http.StatusNoContent)
	first := receive(t, got)
	status.Store(http.StatusOK)
	again := receive(t, got)
	if waited := again.at.Sub(first.at); waited < 4900*time.Millisecond {
		t.Errorf("the retry came after %v, want 5 s", waited)
	}
	if id := first.header.Get("X-Service-Event-Id"); id == "" || id != again.header.Get("X-Service-Event-Id") || string(first.body) != string(again.body) {
		t.Errorf("the retry has id %s, want %s, with the same body", again.header.Get("X-Service-Event-Id"), id)
	}
	eventually(t, "the delivery succeeds in the log", func() error { return delivered(t, one, key) })
}

func delivered(t testing.TB, subscription, key string) error {
	r := call(t, http.MethodGet, subscription+"/deliveries", key, nil)
	wantStatus(t, r, http.StatusOK)
	type delivery struct {
		Event, Status string
		Attempts      int
	}
	list := into[struct{ Data []delivery }](t, r).Data
	if len(list) != 1 {
		return fmt.Errorf("%d deliveries", len(list))
	}
	if want := (delivery{"stream.deleted", "succeeded", 2}); list[0] != want {
		return errors.New(r.body)
	}
	return nil
}

func TestWebhooksToPrivateAddressesAreRefused(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	key := s.dev["SLUICE_API_KEY"]
	for _, url := range []string{"http://127.0.0.1:1/", "https://10.0.0.1/", "https://[::1]/", "https://2130706433/", "http://169.254.169.254/"} {
		body := map[string]any{"url": url, "events": []string{"*"}, "secret": webhookSecret}
		wantError(t, call(t, http.MethodPost, s.url("/v1/webhooks"), key, body), 400, "invalid_request")
		wantError(t, call(t, http.MethodPost, s.url("/v1/webhooks/test"), key, map[string]any{"url": url}), 400, "invalid_request")
	}
}

func TestWebhooksNeedTheirScopes(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	reader, _ := s.newKey(t, "webhooks:read")
	wantStatus(t, call(t, http.MethodGet, s.url("/v1/webhooks"), reader, nil), http.StatusOK)
	wantStatus(t, call(t, http.MethodGet, s.url("/v1/webhooks/event-types"), reader, nil), http.StatusOK)
	wantError(t, call(t, http.MethodPost, s.url("/v1/webhooks"), reader, map[string]any{}), 403, "AUTH_002")
	wantError(t, call(t, http.MethodPost, s.url("/internal/v1/events"), reader, map[string]any{}), 404, "not_found")
}
