// Package stripe has customers of accounts at Stripe, by the calls of its API that billing
// needs: https://docs.stripe.com/api.
package stripe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/accounts/billing/provider"
	"sluice.dev/sluice/platform/outbound"
)

// Version is the version of Stripe's API that is spoken.
const Version = "2026-08-26.dahlia"

// URL is where Stripe's API is.
const URL = "https://api.stripe.com"

// MaxAnswer is how many bytes of an answer are read; Config.Client must keep as many.
const MaxAnswer = 256 << 10

// callTimeout bounds a call: charging a card takes seconds.
const callTimeout = 15 * time.Second

// Config says which account of Stripe's is used.
type Config struct {
	Key            string           // secret: sk_… or rk_…
	PublishableKey string           // pk_…, which browsers may see; empty: they are told none
	URL            string           // empty: URL
	Client         *outbound.Client // the guarded client
}

// Stripe is a provider.Provider.
type Stripe struct{ config Config }

var _ provider.Provider = Stripe{}

// New returns a Stripe.
func New(c Config) Stripe {
	c.URL = strings.TrimRight(cmp.Or(c.URL, URL), "/")
	return Stripe{c}
}

// Name implements provider.Provider.
func (Stripe) Name() string { return "stripe" }

// Charges is true.
func (Stripe) Charges() bool { return true }

// Customer makes a customer; within a day Stripe returns the same for the same account.
func (s Stripe) Customer(ctx context.Context, account string) (string, error) {
	return s.create(ctx, "/v1/customers", url.Values{"metadata[account]": {account}}, "customer "+account)
}

// Setup makes a SetupIntent.
func (s Stripe) Setup(ctx context.Context, customer string) (provider.Setup, error) {
	var made struct {
		ClientSecret string `json:"client_secret"`
	}
	err := s.post(ctx, "/v1/setup_intents", url.Values{
		"customer": {customer}, "usage": {"off_session"},
		"automatic_payment_methods[enabled]": {"true"}, "automatic_payment_methods[allow_redirects]": {"never"},
	}, "", &made)
	if err == nil && made.ClientSecret == "" {
		err = errors.New("stripe: a SetupIntent without a client secret")
	}
	return provider.Setup{ClientSecret: made.ClientSecret, PublishableKey: s.config.PublishableKey}, err
}

// idForm is what ids of Stripe's look like, so that one can stand in a path.
var idForm = regexp.MustCompile(`^[a-z]+_[A-Za-z0-9_]{1,150}$`)

// Attach attaches a PaymentMethod. One that the customer has already is returned.
func (s Stripe) Attach(ctx context.Context, customer, token string) (provider.Method, error) {
	if !idForm.MatchString(token) || !strings.HasPrefix(token, "pm_") {
		return provider.Method{}, &provider.Refusal{Code: "resource_missing"}
	}
	var m paymentMethod
	err := s.post(ctx, "/v1/payment_methods/"+token+"/attach", url.Values{"customer": {customer}}, "", &m)
	if _, refused := errors.AsType[*provider.Refusal](err); refused {
		var there paymentMethod
		if s.call(ctx, http.MethodGet, "/v1/payment_methods/"+token, nil, "", &there) == nil && there.Customer == customer {
			m, err = there, nil
		}
	}
	if err != nil {
		return provider.Method{}, err
	}
	return m.method()
}

// Detach detaches a PaymentMethod, unless nobody has it or there is none.
func (s Stripe) Detach(ctx context.Context, reference string) error {
	path := "/v1/payment_methods/" + reference
	var m paymentMethod
	err := s.post(ctx, path+"/detach", nil, "", &m)
	refused, ok := errors.AsType[*provider.Refusal](err)
	if !ok {
		return err
	}
	if refused.Code == "resource_missing" {
		return nil
	}
	if look := s.call(ctx, http.MethodGet, path, nil, "", &m); look != nil || m.Customer == "" {
		return look
	}
	return err
}

// Prepare makes a PaymentIntent that nobody has confirmed. Stripe forgets after a day or more
// that it made one of an invoice; a second one then is harmless, because only the one whose
// name is kept is ever confirmed.
func (s Stripe) Prepare(ctx context.Context, p provider.Payment) (string, error) {
	return s.create(ctx, "/v1/payment_intents", url.Values{
		"amount": {strconv.FormatInt(p.Amount, 10)}, "currency": {strings.ToLower(p.Currency)}, "customer": {p.Customer},
		"description": {p.Description}, "metadata[invoice]": {p.Invoice},
		"automatic_payment_methods[enabled]": {"true"}, "automatic_payment_methods[allow_redirects]": {"never"},
	}, "invoice "+p.Invoice)
}

// Look reads a PaymentIntent.
func (s Stripe) Look(ctx context.Context, payment string) (provider.Outcome, error) {
	var p paymentIntent
	if err := s.call(ctx, http.MethodGet, "/v1/payment_intents/"+payment, nil, "", &p); err != nil {
		return provider.Outcome{}, err
	}
	return p.outcome()
}

// Charge confirms a PaymentIntent. Stripe lets one succeed once, and refuses to confirm it
// after that.
func (s Stripe) Charge(ctx context.Context, payment, reference string) (provider.Outcome, error) {
	var p paymentIntent
	err := s.post(ctx, "/v1/payment_intents/"+payment+"/confirm", url.Values{"payment_method": {reference}, "off_session": {"true"}}, "", &p)
	refusal, refused := errors.AsType[*provider.Refusal](err)
	if !refused {
		if err != nil {
			return provider.Outcome{}, err
		}
		return p.outcome()
	}
	out, err := s.Look(ctx, payment) // whatever the refusal was about
	out.Failure = cmp.Or(out.Failure, refusal.Code)
	if out.State == provider.Paid {
		out.Failure = ""
	}
	return out, err
}

// create makes something and returns its id.
func (s Stripe) create(ctx context.Context, path string, form url.Values, key string) (string, error) {
	var made object
	if err := s.post(ctx, path, form, key, &made); err != nil {
		return "", err
	}
	if !idForm.MatchString(made.ID) {
		return "", errors.New("stripe: something without an id")
	}
	return made.ID, nil
}

// post makes a call that changes something. Calls with the same key are one, for a day at
// least; key is empty for calls that may be repeated.
func (s Stripe) post(ctx context.Context, path string, form url.Values, key string, into any) error {
	return s.call(ctx, http.MethodPost, path, form, key, into)
}

// call makes one call. It fails with a *provider.Refusal when Stripe does not do it because
// of what it was asked.
func (s Stripe) call(ctx context.Context, method, path string, form url.Values, key string, into any) error {
	header := http.Header{"Authorization": {"Bearer " + s.config.Key}, "Stripe-Version": {Version}}
	if method == http.MethodPost {
		header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if key != "" {
		header.Set("Idempotency-Key", "sluice "+key)
	}
	r, err := s.config.Client.Do(ctx, outbound.Request{Method: method, URL: s.config.URL + path, Header: header, Body: []byte(form.Encode()), Timeout: callTimeout})
	if err != nil {
		return fmt.Errorf("stripe: %w", err)
	}
	if r.OK() {
		if r.Truncated || json.Unmarshal(r.Body, into) != nil {
			return errors.New("stripe: an answer that cannot be read")
		}
		return nil
	}
	return refusal(r)
}

// word is what codes of Stripe's look like.
var word = regexp.MustCompile(`^[a-z0-9_]{1,100}$`)

// refusal is the error of an answer that is none. Texts of Stripe's are left out: they may
// repeat what they were sent. A wrong key, too many calls and faults of Stripe's say nothing
// about what was asked.
func refusal(r outbound.Result) error {
	var body struct {
		Error struct {
			Type        string `json:"type"`
			Code        string `json:"code"`
			DeclineCode string `json:"decline_code"`
		} `json:"error"`
	}
	_ = json.Unmarshal(r.Body, &body) // the status says enough
	code := cmp.Or(body.Error.DeclineCode, body.Error.Code, body.Error.Type)
	if !word.MatchString(code) {
		code = "unknown"
	}
	switch r.Status {
	case http.StatusBadRequest, http.StatusPaymentRequired, http.StatusNotFound:
		return &provider.Refusal{Code: code}
	}
	return fmt.Errorf("stripe answered %d %s", r.Status, code)
}
