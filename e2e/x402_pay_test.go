package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// clipOrder is the body of a request for a clip. Nobody fetches the address before
// the answer.
var clipOrder = map[string]any{"source_url": "https://example.com/film.mp4", "start": 1, "duration": 2}

// offer asks s what a clip costs.
func (s *stack) offer(t testing.TB) requirement {
	t.Helper()
	r := call(t, http.MethodPost, s.url("/v1/clips"), "", clipOrder)
	wantStatus(t, r, http.StatusPaymentRequired)
	return into[quoted](t, r).Accepts[0]
}

// paidReceipt is the X-PAYMENT-RESPONSE of an answer.
type paidReceipt struct {
	Success                                  bool
	Transaction, Network, Payer, ErrorReason string
}

func receiptOf(t testing.TB, r response) (p paidReceipt) {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(r.Header.Get("X-Payment-Response"))
	if err != nil || json.Unmarshal(b, &p) != nil {
		t.Fatalf("%d: X-PAYMENT-RESPONSE %q: %v", r.StatusCode, r.Header.Get("X-Payment-Response"), err)
	}
	return p
}

func TestPayingAgentMakesAClip(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	w := s.funded(t, "25000")
	payment := w.payFor(t, s.offer(t))
	r := call(t, http.MethodPost, s.url("/v1/clips"), "", clipOrder, "X-PAYMENT", payment)
	wantStatus(t, r, http.StatusCreated)
	wantHeaders(t, r)
	p := receiptOf(t, r)
	if !p.Success || p.Payer != w.address || p.Network != "base-sepolia" || len(p.Transaction) != 66 || r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%+v %v", p, r.Header)
	}
	if amount, held := s.balance(t, w.address); amount != "15000" || held != "0" {
		t.Error(amount, held)
	}
	// It reads its clip without a credential, and without paying again.
	made := into[struct {
		ID     string
		Status string `json:"status_url"`
	}](t, r)
	read := call(t, http.MethodGet, made.Status, "", nil)
	wantStatus(t, read, http.StatusOK)
	if got := into[struct{ ID string }](t, read).ID; got != made.ID || made.ID == "" {
		t.Errorf("%s, want clip %s", read.body, made.ID)
	}
	again := call(t, http.MethodPost, s.url("/v1/clips"), "", clipOrder, "X-PAYMENT", payment)
	wantStatus(t, again, http.StatusPaymentRequired)
	if q := into[quoted](t, again); !strings.Contains(q.Error, "nonce_already_used") {
		t.Errorf("%+v", q)
	}
	list := into[struct {
		Data    []struct{ State, Route, Payer, Amount, Transaction string }
		Revenue []struct{ Route, Amount string }
	}](t, call(t, http.MethodGet, s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/payments?payer="+w.address, s.dev["SLUICE_ADMIN_KEY"], nil))
	if len(list.Data) != 1 || list.Data[0].State != "settled" || list.Data[0].Transaction != p.Transaction || len(list.Revenue) != 1 || list.Revenue[0].Amount != "10000" || list.Revenue[0].Route != "clips.create" {
		t.Errorf("%+v", list)
	}
}

// A request that the product refuses is not charged for.
func TestRefusedRequestCostsNothing(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	w := s.funded(t, "10000")
	r := call(t, http.MethodPost, s.url("/v1/clips"), "", map[string]any{"duration": 0}, "X-PAYMENT", w.payFor(t, s.offer(t)))
	wantError(t, r, http.StatusBadRequest, "invalid_request")
	if r.Header.Get("X-Payment-Response") != "" {
		t.Error("a receipt for what was not charged")
	}
	eventually(t, "the amount is free again", func() error {
		if amount, held := s.balance(t, w.address); amount != "10000" || held != "0" {
			return fmt.Errorf("%s, %s held", amount, held)
		}
		return nil
	})
}

func TestPaymentsThatAreRefused(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	w, offer := s.funded(t, "10000"), s.offer(t)
	good := w.payFor(t, offer)
	text, err := base64.StdEncoding.DecodeString(good)
	if err != nil {
		t.Fatal(err)
	}
	replaced := func(old, with string) string {
		if !strings.Contains(string(text), old) {
			t.Fatalf("%s is not in %s", old, text)
		}
		return base64.StdEncoding.EncodeToString([]byte(strings.Replace(string(text), old, with, 1)))
	}
	var a struct {
		Payload struct {
			Signature     string
			Authorization authorization
		}
	}
	if err := json.Unmarshal(text, &a); err != nil {
		t.Fatal(err)
	}
	auth := a.Payload.Authorization
	for name, c := range map[string]struct {
		headers []string
		status  int
		why     string
	}{
		"not base64":             {[]string{"{}"}, 400, "base64"},
		"without its padding":    {[]string{strings.TrimRight(base64.StdEncoding.EncodeToString(append(text, ' ')), "=") + "!"}, 400, "base64"},
		"not JSON":               {[]string{"AAAA"}, 400, "JSON"},
		"blanks before":          {[]string{base64.StdEncoding.EncodeToString(append([]byte(" "), text...))}, 400, "too much white space"},
		"6 KB of blanks":         {[]string{base64.StdEncoding.EncodeToString([]byte("{}" + strings.Repeat(" ", 6000)))}, 400, "too much white space"},
		"a field twice":          {[]string{replaced(`"value"`, `"value":"1","value"`)}, 400, "value is given twice"},
		"a number for a string":  {[]string{replaced(`"10000"`, `10000`)}, 400, "value is not a string"},
		"two headers":            {[]string{good, good}, 400, "repeated_header"},
		"two in one":             {[]string{good + ", " + good}, 400, "repeated_header"},
		"an empty header":        {[]string{""}, 400, "is empty"},
		"more than is taken":     {[]string{strings.Repeat("AAAA", 3000)}, 400, "longer"},
		"another amount":         {[]string{replaced(`"10000"`, `"1"`)}, 402, "authorization_value"},
		"another recipient":      {[]string{replaced(offer.PayTo, w.address)}, 402, "recipient_mismatch"},
		"another network":        {[]string{replaced("base-sepolia", "base")}, 402, "invalid_network"},
		"another scheme":         {[]string{replaced("exact", "upto")}, 402, "unsupported_scheme"},
		"ended":                  {[]string{w.payFor(t, offer, func(a *authorization) { a.ValidBefore = "1000" })}, 402, "valid_before"},
		"not begun":              {[]string{w.payFor(t, offer, func(a *authorization) { a.ValidAfter = "9999999999" })}, 402, "valid_after"},
		"another's signature":    {[]string{encodePayment(t, auth, newWallet(t).sign(t, auth, offer))}, 402, "signature"},
		"the signature's mirror": {[]string{encodePayment(t, auth, highS(w.sign(t, auth, offer)))}, 402, "signature"},
		"of one without funds":   {[]string{newWallet(t).payFor(t, offer)}, 402, "insufficient_funds"},
	} {
		var headers []string
		for _, h := range c.headers {
			headers = append(headers, "X-PAYMENT", h)
		}
		r := call(t, http.MethodPost, s.url("/v1/clips"), "", clipOrder, headers...)
		if r.StatusCode != c.status || !strings.Contains(r.body, c.why) {
			t.Errorf("%s: %d %s, want %s", name, r.StatusCode, r.body, c.why)
		}
		wantHeaders(t, r)
	}
	if amount, held := s.balance(t, w.address); amount != "10000" || held != "0" {
		t.Error(amount, held)
	}
	wantStatus(t, call(t, http.MethodPost, s.url("/v1/clips"), "", clipOrder, "X-PAYMENT", good), http.StatusCreated)
}

// A hundred copies of one payment, in several spellings, at once.
func TestCopiesOfOnePayment(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	w := s.funded(t, "1000000")
	grantOnce(t, 100, w.payFor(t, s.offer(t)), func(int) string { return s.url("") })
	if amount, held := s.balance(t, w.address); amount != "990000" || held != "0" {
		t.Error(amount, held)
	}
}

// grantOnce pays for n requests at once with one payment in several spellings, at
// the gateway that at names for each, and wants one of them to be granted.
func grantOnce(t testing.TB, n int, header string, at func(i int) string) {
	t.Helper()
	copies := spellings(t, header)
	var group sync.WaitGroup
	results := make(chan int, n)
	for i := range n {
		group.Go(func() {
			r, err := try(http.MethodPost, at(i)+"/v1/clips", "", clipOrder, "X-PAYMENT", copies[i%len(copies)])
			if err != nil {
				t.Error(err)
				return
			}
			results <- r.StatusCode
		})
	}
	group.Wait()
	close(results)
	count := map[int]int{}
	for status := range results {
		count[status]++
	}
	if count[201] != 1 || count[402] != n-1 {
		t.Errorf("of %d copies: %v", n, count)
	}
}

// spellings are ways to write one payment.
func spellings(t testing.TB, header string) []string {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(header)
	if err != nil {
		t.Fatal(err)
	}
	var a struct {
		Payload struct{ Authorization authorization }
	}
	if err := json.Unmarshal(text, &a); err != nil {
		t.Fatal(err)
	}
	from, nonce := a.Payload.Authorization.From, a.Payload.Authorization.Nonce
	out := []string{header}
	for _, s := range []string{
		"{ " + string(text[1:]),
		strings.ReplaceAll(string(text), `,"`, ` , "`),
		strings.Replace(string(text), from, "0x"+strings.ToUpper(from[2:]), 1),
		strings.Replace(string(text), nonce, "0x"+strings.ToUpper(nonce[2:]), 1),
		strings.Replace(string(text), `"scheme"`, `"memo":"x","scheme"`, 1),
	} {
		out = append(out, base64.StdEncoding.EncodeToString([]byte(s)))
	}
	return out
}

func TestHubAsAFacilitator(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	w, offer := s.funded(t, "10000"), s.offer(t)
	offer.PayTo, offer.Resource = newWallet(t).address, "https://another.example/thing"
	text, err := base64.StdEncoding.DecodeString(w.payFor(t, offer))
	if err != nil {
		t.Fatal(err)
	}
	body := map[string]any{"x402Version": 1, "paymentPayload": json.RawMessage(text), "paymentRequirements": offer}
	about := into[struct {
		Facilitator struct{ URL, Verify, Settle, Supported string }
		Resources   []struct{ Resource, MaxAmountRequired string }
	}](t, call(t, http.MethodGet, s.url("/.well-known/x402"), "", nil))
	if len(about.Resources) != 1 || about.Resources[0].Resource != s.url("/v1/clips") {
		t.Fatalf("%+v", about)
	}
	wantStatus(t, call(t, http.MethodGet, about.Facilitator.Supported, "", nil), 200)
	v := into[struct {
		IsValid bool
		Payer   string
	}](t, call(t, http.MethodPost, about.Facilitator.Verify, "", body))
	if !v.IsValid || v.Payer != w.address {
		t.Errorf("%+v", v)
	}
	wantError(t, call(t, http.MethodPost, about.Facilitator.Settle, "", body), 401, "authentication_required")
	for _, want := range []string{"", "duplicate_settlement"} {
		p := into[paidReceipt](t, call(t, http.MethodPost, about.Facilitator.Settle, s.dev["SLUICE_API_KEY"], body))
		if p.Success != (want == "") || p.ErrorReason != want {
			t.Errorf("%+v, want %q", p, want)
		}
	}
	wantError(t, call(t, http.MethodPost, about.Facilitator.Verify, "", map[string]any{"x402Version": 1}), 400, "invalid_request")
}
