package main

import "sluice.dev/sluice/filters/host/wasmhost"

// debts are the ends of sales that the hub must hear of: calls that are made
// until they are answered. A worker that dies takes its debts along; the hub
// then gives those payments up, and nothing is charged for them.
type debts struct {
	paths []string
	until int64 // unix seconds: a call is under way, at most that long; 0: none
}

// owed are this worker's. They outlive policies: a sale may begin under one and
// end under the next.
var owed debts

// maxDebts bounds what a worker remembers while no hub answers.
const maxDebts = 4096

func (d *debts) add(path string) {
	if len(d.paths) < maxDebts {
		d.paths = append(d.paths, path)
	}
}

// pay makes the first call that is owed, unless one is under way. It must run in
// the plugin's context: an answer to a request that has ended is never heard.
func (p *plugin) pay() {
	now := wasmhost.Now()
	if now < owed.until || len(owed.paths) == 0 {
		return
	}
	if p.call(owed.paths[0], nil, settleMillis, p.paid) {
		owed.until = now + settleMillis/1000 + 1
	}
}

// paid takes the hub's answer to a call that was owed. Without one the next
// tick asks again.
func (p *plugin) paid(int, int, int) {
	owed.until = 0
	if status, _ := hubAnswer(); status == "" || status[0] == '5' {
		return
	}
	owed.paths = append(owed.paths[:0], owed.paths[1:]...)
	p.pay()
}
