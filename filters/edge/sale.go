package main

import (
	"strconv"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/host/panicguard"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/identity"
	"sluice.dev/sluice/filters/limits/ratelimit"
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

// How long the control plane may take. Settlement waits for others: the control
// plane gives up waiting, and leaves it to a job, before this ends.
const (
	claimMillis  = 10_000
	settleMillis = 25_000
)

// onClaimAnswer takes the answer to a claim.
func (r *request) onClaimAnswer(int, int, int) {
	status, answer := paymentsAnswer()
	switch {
	case status == "201" && answer[x402.IDHeader] != "":
		r.paid.paymentID, r.paid.stage = answer[x402.IDHeader], granted
		r.forwardPaid()
	case status == "402":
		r.paid.stage = ended
		r.sendQuote(r.paid.requirement, x402.Reason(answer[x402.ReasonHeader]))
	default: // it may have been granted all the same: the control plane gives it up by itself
		r.paid.stage = ended
		r.deny(unavailable)
	}
}

// forwardPaid lets the paid request go on, under the payer's name.
func (r *request) forwardPaid() {
	s := r.paid
	c := identity.Caller{Key: identity.PayerPrefix + s.payer}
	if s.scope != "" {
		c.Scopes = []string{s.scope}
	}
	// What was paid with is a credential: it goes no further.
	_ = proxywasm.RemoveHttpRequestHeader("x-payment")
	_ = proxywasm.RemoveHttpRequestHeader("payment-signature")
	value := r.plugin.callers.payerHeader(s.product, c, wasmhost.Now())
	if value == "" || proxywasm.ReplaceHttpRequestHeader(identity.Header, value) != nil || proxywasm.ResumeHttpRequest() != nil {
		r.releasePayment()
		r.deny(unavailable)
	}
}

// settlePayment is called with the head of the answer to a paid request: money moves
// only when the product has served it.
func (r *request) settlePayment() types.Action {
	s := r.paid
	if s == nil || s.stage != granted {
		return types.ActionContinue
	}
	if status, err := proxywasm.GetHttpResponseHeader(":status"); err != nil || status == "" || status[0] > '3' {
		r.releasePayment()
		return types.ActionContinue
	}
	if !r.plugin.callPayments(x402.ClaimsPath+"/"+s.paymentID+"/settle", nil, settleMillis, r.onSettleAnswer) {
		r.endPayment("/settle")
		return types.ActionContinue
	}
	s.stage = settling
	return types.ActionPause
}

// onSettleAnswer takes the answer to a settlement and lets the product's answer
// go: with a receipt, or, when money does not move, not at all. When it
// does not say, the work is done and the payment is good: the payer gets it, and
// the control plane is asked again until it answers.
func (r *request) onSettleAnswer(int, int, int) {
	status, answer := paymentsAnswer()
	s := r.paid
	s.stage = ended
	receipt := answer[x402.ReceiptHeader]
	switch status {
	case "402":
		more := append(rateHeaders(r.rate, r.began), [2]string{s.receiptHeader(), receipt})
		r.sendQuote(s.requirement, x402.Reason(answer[x402.ReasonHeader]), more...)
		return
	case "200", "202":
		_ = proxywasm.ReplaceHttpResponseHeader(s.receiptHeader(), receipt)
	default:
		r.endPayment("/settle")
	}
	_ = proxywasm.ReplaceHttpResponseHeader("cache-control", "no-store") // what was paid for is for the payer
	if err := proxywasm.ResumeHttpResponse(); err != nil {
		proxywasm.LogError("edge: resume a paid answer: " + err.Error())
	}
}

func (s *paidRequest) receiptHeader() string {
	if s.version == 2 {
		return "payment-response"
	}
	return x402.ReceiptHeader
}

// rateHeaders are those of an answer that Envoy sends past this filter.
func rateHeaders(r ratelimit.Result, now int64) [][2]string {
	return [][2]string{
		{"x-ratelimit-limit", strconv.FormatUint(uint64(r.Limit), 10)}, {"x-ratelimit-remaining", strconv.FormatUint(uint64(r.Remaining), 10)},
		{"x-ratelimit-reset", strconv.FormatInt(r.Reset, 10)},
		{"ratelimit-policy", string(r.AppendPolicy(nil))}, {"ratelimit", string(r.AppendState(nil, now))},
	}
}

// releasePayment tells the control plane that the request was not served.
func (r *request) releasePayment() { r.endPayment("/release") }

// endPayment ends the payment and has the control plane told how, from the next
// tick on.
func (r *request) endPayment(how string) {
	r.paid.stage = ended
	pending.add(x402.ClaimsPath + "/" + r.paid.paymentID + how)
}

// OnHttpStreamDone counts the request, and ends its payment.
func (r *request) OnHttpStreamDone() {
	r.usage.count()
	r.endPaidRequest(panicguard.Ended(r.context))
}

// endPaidRequest settles with a payer who went away while the product was at work: else
// leaving in time would make everything free. Nobody pays for the 503 that a crash
// of ours has cost.
func (r *request) endPaidRequest(crashed bool) {
	switch {
	case r.paid == nil || r.paid.stage != granted:
	case crashed:
		r.releasePayment()
	default:
		r.endPayment("/settle")
	}
}

// paymentsAnswer is the status and the headers of an answer about a payment; none when there
// was no answer.
func paymentsAnswer() (status string, headers map[string]string) {
	pairs, err := proxywasm.GetHttpCallResponseHeaders()
	if err != nil {
		return "", nil
	}
	headers = make(map[string]string, 4)
	for _, h := range pairs {
		switch h[0] {
		case ":status":
			status = h[1]
		case x402.IDHeader, x402.ReasonHeader, x402.ReceiptHeader:
			headers[h[0]] = h[1]
		}
	}
	return status, headers
}

// callPayments calls the control plane about a payment, as an edge; it reports whether it is under way.
func (p *plugin) callPayments(path string, body []byte, millis uint32, then func(int, int, int)) bool {
	me := p.callers.edgeHeader(identity.Caller{Key: identity.EdgeKey}, wasmhost.Now())
	if me == "" {
		return false
	}
	headers := [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":authority", edgeapi.FeedCluster}, {":path", path},
		{"content-type", "application/json"}, {identity.Header, me},
	}
	_, err := proxywasm.DispatchHttpCall(edgeapi.FeedCluster, headers, body, nil, millis, then)
	return err == nil
}
