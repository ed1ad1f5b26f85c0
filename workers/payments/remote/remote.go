// Package remote settles payments by another facilitator, with the API that
// facilitators have in common: /verify and /settle.
package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/filters/x402"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/workers/payments/payment"
)

// Config says which facilitator is asked.
type Config struct {
	URL    string           // without a trailing slash
	Client *outbound.Client // the guarded client
	// VerifyTimeout and SettleTimeout bound a call. 0: 5 and 18 seconds.
	VerifyTimeout, SettleTimeout time.Duration
}

// Facilitator is a payment.Settler.
type Facilitator struct{ config Config }

var _ payment.Settler = Facilitator{}

// New returns a Facilitator.
func New(c Config) Facilitator {
	c.URL = strings.TrimRight(c.URL, "/")
	if c.VerifyTimeout == 0 {
		c.VerifyTimeout = 5 * time.Second
	}
	if c.SettleTimeout == 0 {
		c.SettleTimeout = 18 * time.Second
	}
	return Facilitator{c}
}

// Open reports that settling may cost.
func (Facilitator) Open() bool { return false }

// answer is what comes of either call.
type answer struct {
	IsValid       *bool       `json:"isValid"`
	InvalidReason x402.Reason `json:"invalidReason"`

	Success     *bool       `json:"success"`
	ErrorReason x402.Reason `json:"errorReason"`
	Transaction string      `json:"transaction"`
}

// Check asks /verify.
func (f Facilitator) Check(ctx context.Context, p payment.Payment) error {
	a, err := f.call(ctx, "/verify", p, f.config.VerifyTimeout)
	if err == nil && a.IsValid == nil {
		err = errors.New("the facilitator does not say whether the payment is valid")
	}
	if err == nil && !*a.IsValid {
		err = payment.Refuse(known(a.InvalidReason, x402.VerifyFailed))
	}
	return err
}

// used are the reasons of a facilitator that has seen the nonce before.
var used = []x402.Reason{x402.NonceUsed, x402.Duplicate, x402.BadState, "nonce_already_used", "authorization_already_used"}

// Settle asks /settle. The API has no way to ask what became of an earlier call.
// So when an earlier one got no answer, and this one is told that the nonce has
// been used, it was used by that one: nobody else has the payer's signature for
// a transfer to us, or the money has reached us all the same. Any other refusal
// then says nothing about the earlier call, and the outcome stays unknown.
func (f Facilitator) Settle(ctx context.Context, p payment.Payment, again bool) (string, error) {
	a, err := f.call(ctx, "/settle", p, f.config.SettleTimeout)
	if err != nil {
		return "", err
	}
	switch {
	case a.Success == nil:
		return "", errors.New("the facilitator does not say whether it settled")
	case *a.Success, again && slices.Contains(used, a.ErrorReason):
		return string(known(x402.Reason(a.Transaction), "")), nil
	case again:
		return "", fmt.Errorf("an earlier call is not known, a later one was refused: %s", a.ErrorReason)
	}
	return "", payment.Refuse(known(a.ErrorReason, x402.SettleFailed))
}

// known keeps a reason, or a transaction, to what fits a header: words of the
// protocol.
func known(r, otherwise x402.Reason) x402.Reason {
	if r == "" || len(r) > 100 || strings.ContainsFunc(string(r), func(c rune) bool { return c < '!' || c > '~' }) {
		return otherwise
	}
	return r
}

// call makes one call. Facilitators put refusals into answers of 400 and 402
// too; what has no verdict in it is an error.
func (f Facilitator) call(ctx context.Context, path string, p payment.Payment, timeout time.Duration) (a answer, err error) {
	body, err := json.Marshal(newRequest(p))
	if err != nil {
		return a, err
	}
	r, err := f.config.Client.Do(ctx, outbound.Request{
		Method: http.MethodPost, URL: f.config.URL + path, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Timeout: timeout,
	})
	if err != nil {
		return a, fmt.Errorf("facilitator %s: %w", path, err)
	}
	if r.Status >= 500 || json.Unmarshal(r.Body, &a) != nil {
		return a, fmt.Errorf("facilitator %s answered %d", path, r.Status)
	}
	return a, nil
}

// request is the body of both calls, in version 1: a signature does not depend
// on the version in which it came.
type request struct {
	X402Version  int         `json:"x402Version"`
	Payload      payload     `json:"paymentPayload"`
	Requirements requirement `json:"paymentRequirements"`
}

type payload struct {
	X402Version int    `json:"x402Version"`
	Scheme      string `json:"scheme"`
	Network     string `json:"network"`
	Payload     struct {
		Signature     string        `json:"signature"`
		Authorization authorization `json:"authorization"`
	} `json:"payload"`
}

type authorization struct {
	From        string      `json:"from"`
	To          string      `json:"to"`
	Value       x402.Number `json:"value"`
	ValidAfter  x402.Number `json:"validAfter"`
	ValidBefore x402.Number `json:"validBefore"`
	Nonce       string      `json:"nonce"`
}

type requirement = json.RawMessage

func newRequest(p payment.Payment) request {
	r := request{X402Version: 1, Requirements: x402.AppendRequirement(nil, p.Requirement)}
	r.Payload = payload{X402Version: 1, Scheme: x402.Scheme, Network: p.Network}
	r.Payload.Payload.Signature = p.Signature
	r.Payload.Payload.Authorization = authorization{p.From, p.To, p.Value, p.ValidAfter, p.ValidBefore, p.Nonce}
	return r
}
