package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// startStripe starts the stripe-mock that e2e/stripemock pins, which refuses what Stripe's own
// description of its API does not have, and returns its address and how many charges there
// were: a payment that is confirmed succeeds.
func startStripe(t *testing.T, key string) (address string, charges *atomic.Int32) {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-trimpath", "-o", dir+"/", "github.com/stripe/stripe-mock")
	build.Dir, build.Env = "stripemock", append(os.Environ(), "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	mock := exec.Command(filepath.Join(dir, "stripe-mock"), "-http-addr", "127.0.0.1:0")
	said, err := mock.StdoutPipe()
	if err == nil {
		err = mock.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mock.Process.Kill(); _ = mock.Wait() })
	lines, at := bufio.NewScanner(said), ""
	for at == "" && lines.Scan() {
		_, at, _ = strings.Cut(lines.Text(), "Listening for HTTP at address: ")
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	charges = &atomic.Int32{}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: at})
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.StatusCode != http.StatusOK || r.Request.Header.Get("Authorization") != "Bearer "+key {
			t.Errorf("%s %s: %d", r.Request.Method, r.Request.URL.Path, r.StatusCode)
		}
		confirmed := strings.HasSuffix(r.Request.URL.Path, "/confirm")
		if confirmed {
			charges.Add(1)
		}
		return become(r, confirmed)
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	return front.URL, charges
}

// become makes the example of a payment that stripe-mock answers one that has succeeded, or
// that nobody has paid.
func become(r *http.Response, paid bool) error {
	var all map[string]any
	if err := json.NewDecoder(r.Body).Decode(&all); err != nil {
		return err
	}
	if all["object"] == "payment_intent" {
		all["status"] = map[bool]string{true: "succeeded", false: "requires_payment_method"}[paid]
	}
	b, err := json.Marshal(all)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	r.Header.Set("Content-Length", fmt.Sprint(len(b)))
	return err
}

// A customer gives a payment method, a past month is issued by the worker, and charged to it.
func TestInvoicesAreIssuedAndCharged(t *testing.T) {
	t.Parallel()
	const stripeKey = "sk_test_0123456789abcdefghij"
	keepSecret("key of Stripe", stripeKey)
	stripe, charges := startStripe(t, stripeKey)
	file := filepath.Join(t.TempDir(), "stripe.key")
	if err := os.WriteFile(file, []byte(stripeKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := own(t, map[string]string{"SLUICE_STRIPE_KEY_FILE": file, "SLUICE_STRIPE_URL": stripe, "SLUICE_STRIPE_PUBLISHABLE_KEY": "pk_test_1", "SLUICE_WEBHOOK_ALLOW_CIDRS": "127.0.0.0/8"})
	reads, id := s.newKey(t, "billing:read")
	writes, _ := s.newKey(t, "billing:write")
	methods := s.url("/v1/billing/payment-methods")
	wantError(t, call(t, http.MethodPost, methods, reads, map[string]any{"token": "pm_1"}), 403, "AUTH_002")
	wantError(t, call(t, http.MethodGet, methods, writes, nil), 403, "AUTH_002")
	wantError(t, call(t, http.MethodPost, methods, writes, map[string]any{"number": "4242424242424242"}), 400, "invalid_request")
	setup := call(t, http.MethodPost, methods+"/setup", writes, nil)
	wantStatus(t, setup, http.StatusCreated)
	if !strings.Contains(setup.body, `"client_secret":"seti_`) || !strings.Contains(setup.body, `"publishable_key":"pk_test_1"`) {
		t.Error(setup.body)
	}
	added := call(t, http.MethodPost, methods, writes, map[string]any{"token": "pm_1PgafmB7WZ01zgkW6dKueIc5"}, "Idempotency-Key", "once")
	wantStatus(t, added, http.StatusCreated)
	method := into[struct {
		ID      string
		Default bool
	}](t, added)
	again := call(t, http.MethodPost, methods, writes, map[string]any{"token": "pm_1PgafmB7WZ01zgkW6dKueIc5"}, "Idempotency-Key", "once")
	if again.body != added.body || !method.Default {
		t.Errorf("%s, then %s", added.body, again.body)
	}

	// The account's plan had a price two months ago, and then it made requests.
	s.put(t, "plans/local", map[string]any{"limits": map[string]any{"default": map[string]any{"per_minute": 1000000}},
		"price": map[string]any{"currency": "EUR", "monthly": "10.00", "units": map[string]any{"requests": map[string]any{"amount": "0.50", "per": 100, "included": 1000}}}})
	upcoming := call(t, http.MethodGet, s.url("/v1/billing/invoices/upcoming"), reads, nil)
	if wantStatus(t, upcoming, 200); !strings.Contains(upcoming.body, `"status":"draft"`) || !strings.Contains(upcoming.body, `"unit_amount":"10.00"`) {
		t.Error(upcoming.body)
	}
	now := time.Now().UTC()
	month := time.Date(now.Year(), now.Month()-2, 1, 0, 0, 0, 0, time.UTC)
	s.query(t, `INSERT INTO usage_counts (account_id, grain, at, key_id, product, route, class, requests, refused, bytes_in, bytes_out, latency, open_millis)
		SELECT account_id, 2, $2, id, 'api', 'r', 2, 3510, 10, 0, 0, array_fill(0::bigint, ARRAY[20]), 0 FROM api_keys WHERE id = $1`, id, month.AddDate(0, 0, 9))
	s.query(t, `UPDATE accounts SET created_at = $1`, month)
	s.query(t, `UPDATE config_versions SET created_at = $1`, month)
	number := "SLUICE-" + month.Format("2006-01")
	type invoice struct {
		ID, Number, Status, Currency string
		Amount                       int64
		Lines                        []struct {
			Metric, Usage              string
			Quantity, Included, Amount int64
		}
		Collection struct {
			PaymentMethod string `json:"payment_method"`
		}
	}
	var found invoice
	eventually(t, "the invoice is issued and paid", func() error {
		list := call(t, http.MethodGet, s.url("/v1/billing/invoices?status=paid"), reads, nil)
		for _, one := range into[struct{ Data []invoice }](t, list).Data {
			if one.Number == number {
				found = one
				return nil
			}
		}
		return fmt.Errorf("%s", list.body)
	})
	found = into[invoice](t, call(t, http.MethodGet, s.url("/v1/billing/invoices/"+found.ID), reads, nil))
	if found.Currency != "EUR" || found.Amount != 2250 || len(found.Lines) != 2 || found.Collection.PaymentMethod != method.ID || charges.Load() == 0 {
		t.Fatalf("%+v, %d charges", found, charges.Load())
	}
	line := found.Lines[1]
	report := into[struct {
		Requests struct{ Requests, Refused int64 }
	}](t, call(t, http.MethodGet, s.url(line.Usage), reads, nil))
	if line.Quantity != 3500 || report.Requests.Requests-report.Requests.Refused != line.Quantity || line.Included != 1000 || line.Amount != 1250 {
		t.Errorf("%+v, and its usage %+v", line, report)
	}
	wantStatus(t, call(t, http.MethodDelete, methods+"/"+method.ID, writes, nil), http.StatusNoContent)
	if left := call(t, http.MethodGet, methods, reads, nil); !strings.Contains(left.body, `"data":[]`) {
		t.Error(left.body)
	}
}
