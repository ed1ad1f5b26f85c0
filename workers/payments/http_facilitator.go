package payments

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/filters/x402"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/limits/fairshare"
	"sluice.dev/sluice/workers/payments/payment"
)

// Facilitator serves other sellers, and describes what is for sale here.
type Facilitator struct {
	Service  *Service
	Document func(context.Context) (config.Document, error) // the configuration in force
	Identity identity.Verifier
	BaseURL  string // public address of the gateway, without a trailing slash
	// Places are what sellers share of calls that ask a node or another
	// facilitator; nil: there is no bound.
	Places *fairshare.Pool
}

// Where the facilitator stands.
const facilitatorPath = "/x402"

// Routes mounts, for everyone behind the gateway:
//
//	POST /x402/verify, POST /x402/settle, GET /x402/supported   as other facilitators have them
//	GET /.well-known/x402                                       what they are, and what costs what
func (f Facilitator) Routes(r chi.Router, a httpapi.Adapter) {
	r.Post(facilitatorPath+"/verify", a.Handle(f.verify))
	r.Post(facilitatorPath+"/settle", a.Handle(f.settle))
	r.Get(facilitatorPath+"/supported", httpapi.Handle(a, http.StatusOK, f.supported))
	r.Get("/.well-known/x402", httpapi.Handle(a, http.StatusOK, f.describe))
}

type verified struct {
	IsValid       bool        `json:"isValid"`
	InvalidReason x402.Reason `json:"invalidReason,omitempty"`
	Payer         string      `json:"payer"`
}

// verify answers POST /x402/verify: 200 with a verdict, 400 for what is no
// payment. It wants a caller where each call costs calls of others.
func (f Facilitator) verify(w http.ResponseWriter, r *http.Request) error {
	if !f.Service.config.Settler.Open() {
		c, err := f.Identity.Caller(r)
		if err != nil {
			return err
		}
		release, err := f.acquire(c)
		if err != nil {
			return err
		}
		defer release()
	}
	o, err := ReadOrder(w, r)
	if err != nil {
		return err
	}
	v := verified{IsValid: true, Payer: o.Payment.From}
	err = f.Service.Verify(r.Context(), o)
	if refusal, ok := errors.AsType[*payment.Refusal](err); ok {
		v.IsValid, v.InvalidReason = false, refusal.Reason
	} else if err != nil {
		return err
	}
	return httpapi.Result(w, http.StatusOK, v, nil)
}

// SettleScope is what a caller needs to have payments settled: they are paid
// with our gas, or with our credentials elsewhere.
const SettleScope = "payments:settle"

// settle answers POST /x402/settle. A payment is settled for one caller, once:
// whoever asks again is told that it is a duplicate, since a second seller, or
// a second request, must not count on it.
func (f Facilitator) settle(w http.ResponseWriter, r *http.Request) error {
	seller, err := f.seller(r)
	if err != nil {
		return err
	}
	release, err := f.acquire(seller)
	if err != nil {
		return err
	}
	defer release()
	o, err := ReadOrder(w, r)
	if err != nil {
		return err
	}
	o.Account = seller.Account
	o.Route, o.RequestID = "", httpapi.RequestID(r)
	id, err := f.Service.Claim(r.Context(), o)
	if refusal, ok := errors.AsType[*payment.Refusal](err); ok {
		if refusal.Reason == x402.NonceUsed {
			refusal.Reason = x402.Duplicate
		}
		httpapi.JSON(w, http.StatusOK, receipt{ErrorReason: refusal.Reason, Payer: o.Payment.From, Network: o.Payment.Network})
		return nil
	}
	if err != nil {
		return err
	}
	p, err := f.Service.Settle(r.Context(), id)
	return httpapi.Result(w, http.StatusOK, receiptOf(p), err)
}

// seller is who asks to have a payment settled. It fails with
// authentication_required without a caller who has an account, and with
// insufficient_scope when the caller lacks SettleScope, whatever the route asks.
func (f Facilitator) seller(r *http.Request) (identity.Caller, error) {
	c, err := f.Identity.Caller(r)
	switch {
	case err != nil:
		return c, err
	case c.Account == "":
		return c, &apierror.Error{Code: decision.AuthRequired}
	case !scopes.Covers(c.Scopes, SettleScope):
		return c, &apierror.Error{Code: decision.ScopeMissing, Details: []decision.Detail{{Field: "scope", Issue: "is not granted to this credential", Expected: SettleScope}}}
	}
	return c, nil
}

// acquire takes one of the places of c's account. It fails with
// rate_limit_exceeded when the account has its share under way.
func (f Facilitator) acquire(c identity.Caller) (release func(), err error) {
	if f.Places == nil {
		return func() {}, nil
	}
	release, ok := f.Places.TryEnter(cmp.Or(c.Account, c.Key))
	if !ok {
		return nil, &apierror.Error{Code: decision.RateLimited, RetryAfter: 1, Message: "The account has as many payments under way as it may."}
	}
	return release, nil
}

// kind is one way of paying.
type kind struct {
	X402Version int    `json:"x402Version"`
	Scheme      string `json:"scheme"`
	Network     string `json:"network"`
}

// kinds are those of the configured network, in both versions; none when
// nothing is configured.
func kinds(t x402.Terms) []kind {
	if t.Network == "" {
		return []kind{}
	}
	return []kind{{1, x402.Scheme, t.Network}, {2, x402.Scheme, x402.CAIP(t.Network)}}
}

// supported is the answer of GET /x402/supported.
type supported struct {
	Kinds      []kind              `json:"kinds"`
	Extensions []string            `json:"extensions"`
	Signers    map[string][]string `json:"signers"`
}

func (f Facilitator) supported(r *http.Request, _ httpapi.None) (supported, error) {
	d, err := f.Document(r.Context())
	return supported{kinds(d.X402.Terms()), []string{}, map[string][]string{}}, err
}

// manifest is the answer of GET /.well-known/x402. There is no standard for it;
// it follows the proposal of a manifest whose kinds are those of /supported.
type manifest struct {
	X402Version int       `json:"x402Version"`
	Kind        []string  `json:"kind"`
	Facilitator endpoints `json:"facilitator"`
	Kinds       []kind    `json:"kinds"`
	PayTo       string    `json:"payTo,omitempty"`
	Asset       string    `json:"asset,omitempty"`
	Resources   []forSale `json:"resources"`
	Docs        string    `json:"documentation_url"`
}

type endpoints struct {
	URL       string `json:"url"`
	Verify    string `json:"verify"`
	Settle    string `json:"settle"`
	Supported string `json:"supported"`
}

type forSale struct {
	Route             string   `json:"route"`
	Resource          string   `json:"resource"` // with {variables}, if any
	Methods           []string `json:"methods"`
	MaxAmountRequired string   `json:"maxAmountRequired"`
	Price             string   `json:"price"` // in whole units
}

// SetHeaders lets everybody keep it for a minute, and scripts of any page read it.
func (manifest) SetHeaders(h http.Header) {
	h.Set("Cache-Control", "public, max-age=60")
	h.Set("Access-Control-Allow-Origin", "*")
}

func (f Facilitator) describe(r *http.Request, _ httpapi.None) (manifest, error) {
	d, err := f.Document(r.Context())
	if err != nil {
		return manifest{}, err
	}
	t, base := d.X402.Terms(), f.BaseURL+facilitatorPath
	m := manifest{
		X402Version: 1, Kind: []string{"facilitator", "resource-server"}, Kinds: kinds(t), PayTo: t.PayTo, Asset: t.Asset, Resources: []forSale{},
		Facilitator: endpoints{base, base + "/verify", base + "/settle", base + "/supported"}, Docs: f.BaseURL + "/docs/errors/" + string(decision.PaymentRequired),
	}
	for _, route := range d.Routes {
		if n, ok := d.X402.Atomic(route.Price); ok {
			m.Resources = append(m.Resources, forSale{route.Name, f.BaseURL + route.Path, route.Methods, atomic(n), route.Price})
		}
	}
	return m, nil
}
