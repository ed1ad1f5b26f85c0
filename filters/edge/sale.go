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

// sale is one request that is paid for.
type sale struct {
	stage   stage
	need    x402.Requirement
	payer   string
	scope   string // that the payer gets, of the route
	product string // that is paid for
	version uint8  // of the protocol that the payer speaks
	id      string // of the request: the answer's callbacks cannot ask for it
	claim   string // the hub's id of the payment; empty: not known yet
}

// stage is how far a sale has come.
type stage uint8

const (
	claiming stage = iota + 1 // the hub is asked whether the payment is good
	granted                   // the product is at work
	settling                  // the hub moves the money, the answer waits
	ended                     // nothing is owed to the hub any more
)

// How long the hub may take. Settlement waits for others: the hub itself gives
// up waiting, and leaves it to a job, before this ends.
const (
	claimMillis  = 10_000
	settleMillis = 25_000
)

// claimed takes the hub's answer to a claim.
func (r *request) claimed(int, int, int) {
	status, answer := hubAnswer()
	switch {
	case status == "201" && answer[x402.IDHeader] != "":
		r.sale.claim, r.sale.stage = answer[x402.IDHeader], granted
		r.admit()
	case status == "402":
		r.sale.stage = ended
		r.quote(r.sale.need, x402.Reason(answer[x402.ReasonHeader]))
	default: // it may have been granted all the same: the hub gives it up by itself
		r.sale.stage = ended
		r.refuse(unavailable)
	}
}

// admit lets the paid request go on, under the payer's name.
func (r *request) admit() {
	s := r.sale
	c := identity.Caller{Key: identity.PayerPrefix + s.payer}
	if s.scope != "" {
		c.Scopes = []string{s.scope}
	}
	// What was paid with is a credential: it goes no further.
	_ = proxywasm.RemoveHttpRequestHeader("x-payment")
	_ = proxywasm.RemoveHttpRequestHeader("payment-signature")
	value := r.plugin.callers.tell(s.product, c, wasmhost.Now())
	if value == "" || proxywasm.ReplaceHttpRequestHeader(identity.Header, value) != nil || proxywasm.ResumeHttpRequest() != nil {
		r.release()
		r.refuse(unavailable)
	}
}

// settle is called with the head of the answer to a paid request: money moves
// only when the product has served it.
func (r *request) settle() types.Action {
	s := r.sale
	if s == nil || s.stage != granted {
		return types.ActionContinue
	}
	if status, err := proxywasm.GetHttpResponseHeader(":status"); err != nil || status == "" || status[0] > '3' {
		r.release()
		return types.ActionContinue
	}
	if !r.plugin.call(x402.ClaimsPath+"/"+s.claim+"/settle", nil, settleMillis, r.settled) {
		r.owe("/settle")
		return types.ActionContinue
	}
	s.stage = settling
	return types.ActionPause
}

// settled takes the hub's answer to a settlement and lets the product's answer
// go: with a receipt, or, when money does not move, not at all. When the hub
// does not say, the work is done and the payment is good: the payer gets it, and
// the hub is asked again until it answers.
func (r *request) settled(int, int, int) {
	status, answer := hubAnswer()
	s := r.sale
	s.stage = ended
	receipt := answer[x402.ReceiptHeader]
	switch status {
	case "402":
		more := append(rateHeaders(r.rate, r.began), [2]string{s.receiptHeader(), receipt})
		r.quote(s.need, x402.Reason(answer[x402.ReasonHeader]), more...)
		return
	case "200", "202":
		_ = proxywasm.ReplaceHttpResponseHeader(s.receiptHeader(), receipt)
	default:
		r.owe("/settle")
	}
	_ = proxywasm.ReplaceHttpResponseHeader("cache-control", "no-store") // what was paid for is for the payer
	if err := proxywasm.ResumeHttpResponse(); err != nil {
		proxywasm.LogError("edge: resume a paid answer: " + err.Error())
	}
}

func (s *sale) receiptHeader() string {
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

// release tells the hub that the request was not served.
func (r *request) release() { r.owe("/release") }

// owe ends the sale and has the hub told how, from the next tick on.
func (r *request) owe(how string) {
	r.sale.stage = ended
	owed.add(x402.ClaimsPath + "/" + r.sale.claim + how)
}

// OnHttpStreamDone counts the request, and ends its sale.
func (r *request) OnHttpStreamDone() {
	r.usage.done()
	r.leave(panicguard.Ended(r.context))
}

// leave settles with a payer who went away while the product was at work: else
// leaving in time would make everything free. Nobody pays for the 503 that a crash
// of ours has cost.
func (r *request) leave(crashed bool) {
	switch {
	case r.sale == nil || r.sale.stage != granted:
	case crashed:
		r.release()
	default:
		r.owe("/settle")
	}
}

// hubAnswer is the status and the headers of the hub's answer; none when there
// was no answer.
func hubAnswer() (status string, headers map[string]string) {
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

// call makes a call of the hub, as an edge; it reports whether it is under way.
func (p *plugin) call(path string, body []byte, millis uint32, then func(int, int, int)) bool {
	me := p.callers.sign(identity.Caller{Key: identity.EdgeKey}, wasmhost.Now())
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
