package main

import (
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/filters/x402"
)

// pendingSettlements are the ends of payments that the control plane must be told
// of: calls that are made until they are answered. A worker that dies takes them
// along; the control plane then gives those payments up, and nothing is charged.
type pendingSettlements struct {
	paths []string
	until int64 // unix seconds: a call is under way, at most that long; 0: none
}

// pending are this worker's. They outlive policies: a paid request may begin under
// one and end under the next.
var pending pendingSettlements

// maxPending bounds what a worker remembers while no control plane answers.
const maxPending = 4096

func (d *pendingSettlements) add(path string) {
	if len(d.paths) < maxPending {
		d.paths = append(d.paths, path)
	}
}

// sendPending makes the first pending call, unless one is under way. It must run in
// the plugin's context: an answer to a request that has ended is never heard.
func (p *plugin) sendPending() {
	now := wasmhost.Now()
	if now < pending.until || len(pending.paths) == 0 {
		return
	}
	if p.callPayments(pending.paths[0], nil, settleMillis, p.onPendingAnswer) {
		pending.until = now + settleMillis/1000 + 1
	}
}

// onPendingAnswer takes the answer to a pending call. Without one the next
// tick asks again.
func (p *plugin) onPendingAnswer(int, int, int) {
	pending.until = 0
	if status, _ := paymentsAnswer(); status == "" || status[0] == '5' {
		return
	}
	pending.paths = append(pending.paths[:0], pending.paths[1:]...)
	p.sendPending()
}

// How long the control plane may take. Settlement waits for others: the control
// plane gives up waiting, and leaves it to a job, before this ends.
const (
	claimMillis  = 10_000
	settleMillis = 25_000
)

// callPayments calls the control plane about a payment, as an edge; it reports
// whether the call is under way.
func (p *plugin) callPayments(path string, body []byte, millis uint32, then func(int, int, int)) bool {
	me := p.callers.edgeHeader(identityheader.Caller{Key: identityheader.EdgeKey}, wasmhost.Now())
	if me == "" {
		return false
	}
	headers := [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":authority", edgeapi.FeedCluster}, {":path", path},
		{"content-type", "application/json"}, {identityheader.Header, me},
	}
	_, err := proxywasm.DispatchHttpCall(edgeapi.FeedCluster, headers, body, nil, millis, then)
	return err == nil
}

// paymentsAnswer is the status and the headers of an answer about a payment;
// none when there was no answer.
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
