package main

import "sluice.dev/sluice/filters/host/wasmhost"

// pendingSettlements are the ends of payments that the control plane must be told of:
// calls that are made until they are answered. A worker that dies takes them along;
// the control plane then gives those payments up, and nothing is charged for them.
type pendingSettlements struct {
	paths []string
	until int64 // unix seconds: a call is under way, at most that long; 0: none
}

// pending are this worker's. They outlive policies: a paid request may begin under one and
// end under the next.
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
