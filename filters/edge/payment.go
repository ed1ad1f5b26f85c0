package main

import (
	"strings"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/authorize"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/x402"
)

// isPayable reports whether the request lacks nothing but a credential, and its
// route can be paid for in place of one. A credential that is not valid is never
// made good by money.
func isPayable(v authorize.Verdict) bool {
	return v.Code == decision.AuthRequired && v.Route != nil && v.Route.Price > 0
}

// maxPath bounds the path of what is sold, in bytes: a quote repeats it, in a
// header too.
const maxPath = 1024

// requirement is what this request costs; ok is false when its path is too long
// to be sold.
func (r *request) requirement(v authorize.Verdict) (need x402.Requirement, ok bool) {
	path, _, _ := strings.Cut(wasmhost.Header(":path"), "?")
	p := r.plugin.policy
	return x402.Requirement{
		Terms: p.Payment, Amount: v.Route.Price, Resource: p.DocsBase + path,
		Description: "One call of " + v.Route.Name, MimeType: "application/json",
	}, len(path) <= maxPath
}

// sendQuote answers 402: what the request costs, and why it was not let through.
func (r *request) sendQuote(q x402.Requirement, why x402.Reason, more ...[2]string) types.Action {
	r.plugin.denied.Increment(1)
	headers := append(make([][2]string, 0, 8), more...)
	headers = append(headers, [2]string{"content-type", "application/json"}, [2]string{"cache-control", "no-store"})
	if q.V2 {
		headers = append(headers, [2]string{"payment-required", x402.HeaderV2(q, why)})
	}
	body := x402.AppendQuote(nil, q, why, r.requestID(), r.plugin.policy.DocsBase)
	r.send(402, headers, body)
	return types.ActionPause
}

// requestID is the request's id.
func (r *request) requestID() string {
	if r.paid != nil {
		return r.paid.requestID
	}
	return wasmhost.Header("x-request-id")
}

// claimPayment answers a request without a credential to a route that has a price: with
// a quote, or, when it brings a payment, with what comes of that. The payment's
// claim is made by a call of the hub, while the request waits. It is called for
// requests within their address's limit only, so no others have a payment read.
func (r *request) claimPayment(v authorize.Verdict, now int64) types.Action {
	need, ok := r.requirement(v)
	if !ok {
		return r.deny(decision.Decision{Code: decision.InvalidRequest, Detail: decision.Detail{
			Field: "path", Issue: "is too long to be paid for", Expected: "at most 1024 bytes"}})
	}
	header, d := r.paymentHeader(need.V2)
	if !d.OK() {
		return r.deny(d)
	}
	if header == "" {
		return r.sendQuote(need, x402.HeaderIsRequired)
	}
	text, issue := x402.Decode(header)
	var p x402.Payment
	if issue == "" {
		p, issue = x402.Parse(text)
	}
	if issue != "" {
		return r.deny(malformed(issue))
	}
	if why := x402.Decide(need, p, now); why != x402.Accepted {
		return r.sendQuote(need, why)
	}
	r.paid = &paidRequest{requirement: need, payer: p.From, scope: v.Route.Scope, product: v.Route.Product, version: p.Version, requestID: r.requestID()}
	body := x402.AppendClaim(nil, need, text, v.Route.Name, r.requestID())
	if !r.plugin.callPayments(x402.ClaimsPath, body, claimMillis, r.onClaimAnswer) {
		return r.deny(unavailable)
	}
	r.paid.stage = claiming
	return types.ActionPause
}

// deny ends the request with d.
func (r *request) deny(d decision.Decision) types.Action {
	r.plugin.denied.Increment(1)
	r.sendError(d)
	return types.ActionPause
}

var unavailable = decision.Decision{Code: decision.Unavailable, RetryAfter: 1}

func malformed(issue string) decision.Decision {
	return decision.Decision{Code: decision.InvalidRequest, Detail: decision.Detail{Field: "X-PAYMENT", Issue: issue, Expected: "one payment of x402"}}
}

// paymentHeader returns the request's one payment header; "" when it has none. Two of
// them are refused: others on the way may read another one than we do.
func (r *request) paymentHeader(v2 bool) (value string, d decision.Decision) {
	headers, err := proxywasm.GetHttpRequestHeaders()
	if err != nil {
		return "", decision.Deny(decision.Internal)
	}
	found := 0
	for _, h := range headers {
		if h[0] == "x-payment" || v2 && h[0] == "payment-signature" {
			found++
			value = h[1]
		}
	}
	if found > 1 {
		return "", malformed("is given twice")
	}
	if found == 1 && value == "" {
		return "", malformed("is empty")
	}
	return value, decision.Pass
}
