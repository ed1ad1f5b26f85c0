package payments

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/x402"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/workers/payments/payment"
)

// maxBody bounds the body of a call to the payments service: a payment and what it is for.
const maxBody = 64 << 10

// request is what edges, and other sellers, send: the body of a facilitator's
// /verify and /settle, with what only edges know beside it.
type request struct {
	X402Version  int             `json:"x402Version"`
	Payload      json.RawMessage `json:"paymentPayload"`
	Requirements requirements    `json:"paymentRequirements"`

	Route     string `json:"route"`
	RequestID string `json:"request_id"`
}

// requirements are an element of `accepts` in either version.
type requirements struct {
	Scheme            string `json:"scheme"`
	Network           string `json:"network"`
	MaxAmountRequired string `json:"maxAmountRequired"` // version 1
	Amount            string `json:"amount"`            // version 2
	Resource          string `json:"resource"`
	Asset             string `json:"asset"`
	PayTo             string `json:"payTo"`
	MaxTimeoutSeconds uint32 `json:"maxTimeoutSeconds"`
	Extra             struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"extra"`
}

// requirement is r in our form.
func (r requirements) requirement() (q x402.Requirement, ok bool) {
	amount, err := strconv.ParseUint(r.MaxAmountRequired+r.Amount, 10, 63)
	ok = err == nil && r.Scheme == x402.Scheme && x402.IsAddress(r.Asset) && x402.IsAddress(r.PayTo)
	return x402.Requirement{
		Terms:  x402.Terms{Network: r.Network, Asset: r.Asset, PayTo: r.PayTo, Name: r.Extra.Name, Version: r.Extra.Version, Seconds: r.MaxTimeoutSeconds},
		Amount: amount, Resource: r.Resource,
	}, ok
}

// ReadOrder reads an order from a request. It fails with invalid_request when the body is not one. It
// takes time linear in the body, of 64 KiB at most, and memory of at most 48 bytes
// for each of its bytes.
func ReadOrder(w http.ResponseWriter, r *http.Request) (o Order, err error) {
	raw, err := httpapi.ReadJSON(w, r, maxBody)
	if err != nil {
		return o, err
	}
	if bad := httpapi.CheckJSON(raw); len(bad) > 0 {
		return o, apierror.Invalid(bad)
	}
	var body request
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&body); err != nil {
		return o, httpapi.OfBody(malformed("body", "is not a request to verify or settle", "x402Version, paymentPayload and paymentRequirements"), raw)
	}
	p, issue := x402.Parse(body.Payload)
	if issue != "" {
		return o, malformed("paymentPayload", issue, "a payment of x402, version 1 or 2, scheme exact")
	}
	q, ok := body.Requirements.requirement()
	if !ok {
		return o, malformed("paymentRequirements", "are not requirements of the scheme exact", "an element of accepts, as it was quoted")
	}
	if q.Resource == "" {
		q.Resource = p.Resource // version 2 has it there
	}
	return Order{Requirement: q, Payment: p, Route: body.Route, RequestID: body.RequestID}, nil
}

func malformed(field, issue, expected string) error {
	return apierror.Invalid([]decision.Detail{{Field: field, Issue: issue, Expected: expected}})
}

// receipt is what a payer is told of a settlement: the JSON in
// X-PAYMENT-RESPONSE, and a facilitator's answer to /settle.
type receipt struct {
	Success     bool        `json:"success"`
	ErrorReason x402.Reason `json:"errorReason,omitempty"`
	Payer       string      `json:"payer"`
	Transaction string      `json:"transaction"`
	Network     string      `json:"network"`
}

// receiptOf says how p stands.
func receiptOf(p payment.Payment) receipt {
	r := receipt{Payer: p.From, Transaction: p.Transaction, Network: p.Payment.Network}
	switch p.State {
	case payment.Settled:
		r.Success = true
	case payment.Settling:
		r.ErrorReason = x402.SettlePending
	default:
		r.ErrorReason = p.Reason
		if r.ErrorReason == "" {
			r.ErrorReason = x402.BadState
		}
	}
	return r
}

// header is r as the value of X-PAYMENT-RESPONSE.
func (r receipt) header() string {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // it has strings and a truth value only
	}
	return base64.StdEncoding.EncodeToString(b)
}
