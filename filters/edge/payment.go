package main

import (
	"strings"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/authorize"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/filters/x402"
)

// paidRequest is one request that is paid for.
type paidRequest struct {
	stage       stage
	requirement x402.Requirement
	payer       string
	scope       string // that the payer gets, of the route
	product     string // that is paid for
	version     uint8  // of the protocol that the payer speaks
	requestID   string // of the request: the answer's callbacks cannot ask for it
	paymentID   string // of the payment at the control plane; empty: not known yet
}

// stage is how far a paid request has come.
type stage uint8

const (
	claiming stage = iota + 1 // the control plane is asked whether the payment is good
	granted                   // the product is at work
	settling                  // the control plane moves the money, the answer waits
	ended                     // the control plane needs no more calls
)

// isPayable reports whether the request lacks nothing but a credential, and its
// route can be paid for in place of one. A credential that is not valid is never
// made good by money.
func isPayable(v authorize.Verdict) bool {
	return v.Code == decision.AuthRequired && v.Route != nil && v.Route.Price > 0
}

// claimPayment takes a request without a credential to a route that has a price. It
// answers with a quote, or, when the request brings a payment, claims that at the
// control plane while the request waits. It is called for requests within their
// address's limit only, so no others have a payment read.
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
	r.extra = &extra{paid: &paidRequest{requirement: need, payer: p.From, scope: v.Route.Scope, product: v.Route.Product, version: p.Version, requestID: r.requestID()}}
	body := x402.AppendClaim(nil, need, text, v.Route.Name, r.requestID())
	if !r.plugin.callPayments(x402.ClaimsPath, body, claimMillis, r.onClaimAnswer) {
		return r.deny(unavailable)
	}
	r.extra.paid.stage = claiming
	return types.ActionPause
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

// paymentHeader returns the request's one payment header; "" when it has none. Two
// of them are refused: others on the way may read another one than we do.
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

func malformed(issue string) decision.Decision {
	return decision.Decision{Code: decision.InvalidRequest, Detail: decision.Detail{Field: "X-PAYMENT", Issue: issue, Expected: "one payment of x402"}}
}

// sendQuote answers 402: what the request costs, and why it was not let through.
func (r *request) sendQuote(q x402.Requirement, why x402.Reason, more ...[2]string) types.Action {
	headers := append(make([][2]string, 0, 8), more...)
	headers = append(headers, [2]string{"content-type", "application/json"}, [2]string{"cache-control", "no-store"})
	if q.V2 {
		headers = append(headers, [2]string{"payment-required", x402.HeaderV2(q, why)})
	}
	body := x402.AppendQuote(nil, q, why, r.requestID(), r.plugin.policy.DocsBase)
	r.usage.reason = decision.PaymentRequired
	r.send(402, headers, body)
	return types.ActionPause
}

// requestID is the request's id.
func (r *request) requestID() string {
	if r.extra != nil && r.extra.paid != nil {
		return r.extra.paid.requestID
	}
	return wasmhost.Header("x-request-id")
}

// onClaimAnswer takes the answer to a claim.
func (r *request) onClaimAnswer(int, int, int) {
	status, answer := paymentsAnswer()
	switch {
	case status == "201" && answer[x402.IDHeader] != "":
		r.extra.paid.paymentID, r.extra.paid.stage = answer[x402.IDHeader], granted
		r.forwardPaid()
	case status == "402":
		r.extra.paid.stage = ended
		r.sendQuote(r.extra.paid.requirement, x402.Reason(answer[x402.ReasonHeader]))
	default: // it may have been granted all the same: the control plane gives it up by itself
		r.extra.paid.stage = ended
		r.deny(unavailable)
	}
}

// forwardPaid lets the paid request go on, under the payer's name.
func (r *request) forwardPaid() {
	p := r.extra.paid
	c := identityheader.Caller{Key: identityheader.PayerPrefix + p.payer}
	if p.scope != "" {
		c.Scopes = []string{p.scope}
	}
	// What was paid with is a credential: it goes no further.
	_ = proxywasm.RemoveHttpRequestHeader("x-payment")
	_ = proxywasm.RemoveHttpRequestHeader("payment-signature")
	value := r.plugin.callers.payerHeader(p.product, c, wasmhost.Now())
	if value == "" || proxywasm.ReplaceHttpRequestHeader(identityheader.Header, value) != nil || proxywasm.ResumeHttpRequest() != nil {
		r.releasePayment()
		r.deny(unavailable)
	}
}

// settlePayment is called with the head of the answer to a paid request: money
// moves only when the product has served it.
func (r *request) settlePayment() types.Action {
	p := r.extra.paid
	if p == nil || p.stage != granted {
		return types.ActionContinue
	}
	if status, err := proxywasm.GetHttpResponseHeader(":status"); err != nil || status == "" || status[0] > '3' {
		r.releasePayment()
		return types.ActionContinue
	}
	if !r.plugin.callPayments(x402.ClaimsPath+"/"+p.paymentID+"/settle", nil, settleMillis, r.onSettleAnswer) {
		r.endPayment("/settle")
		return types.ActionContinue
	}
	p.stage = settling
	return types.ActionPause
}

// onSettleAnswer takes the answer to a settlement and lets the product's answer
// go: with a receipt, or, when money does not move, not at all. Without an answer
// the work is done and the payment is good: the payer gets it, and the control
// plane is asked again until it answers.
func (r *request) onSettleAnswer(int, int, int) {
	status, answer := paymentsAnswer()
	p := r.extra.paid
	p.stage = ended
	receipt := answer[x402.ReceiptHeader]
	switch status {
	case "402":
		// Envoy sends this answer past OnHttpResponseHeaders.
		more := append(r.rate.Headers(r.began), [2]string{p.receiptHeader(), receipt})
		r.sendQuote(p.requirement, x402.Reason(answer[x402.ReasonHeader]), more...)
		return
	case "200", "202":
		_ = proxywasm.ReplaceHttpResponseHeader(p.receiptHeader(), receipt)
	default:
		r.endPayment("/settle")
	}
	_ = proxywasm.ReplaceHttpResponseHeader("cache-control", "no-store") // what was paid for is for the payer
	if err := proxywasm.ResumeHttpResponse(); err != nil {
		proxywasm.LogError("edge: resume a paid answer: " + err.Error())
	}
}

func (p *paidRequest) receiptHeader() string {
	if p.version == 2 {
		return "payment-response"
	}
	return x402.ReceiptHeader
}

// endPaidRequest settles with a payer who went away while the product was at work:
// else leaving in time would make everything free. Nobody pays for the 503 that a
// crash of ours has cost.
func (r *request) endPaidRequest(crashed bool) {
	switch {
	case r.extra.paid == nil || r.extra.paid.stage != granted:
	case crashed:
		r.releasePayment()
	default:
		r.endPayment("/settle")
	}
}

// releasePayment tells the control plane that the request was not served.
func (r *request) releasePayment() { r.endPayment("/release") }

// endPayment ends the payment and has the control plane told how, from the next
// tick on.
func (r *request) endPayment(how string) {
	r.extra.paid.stage = ended
	pending.add(x402.ClaimsPath + "/" + r.extra.paid.paymentID + how)
}

var unavailable = decision.Decision{Code: decision.Unavailable, RetryAfter: 1}
