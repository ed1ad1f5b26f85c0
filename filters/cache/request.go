package main

import (
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/host/panicguard"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/httpcache"
	"sluice.dev/sluice/filters/identityheader"
)

// request is one request on its way through the filter.
type request struct {
	types.DefaultHttpContext
	plugin  *plugin
	context uint32 // Envoy's number of it
	rule    *rule
	ask     httpcache.Ask
	status  string // for Cache-Status; empty: not forwarded
	keeping bool
	answer  httpcache.Answer
	body    []byte
	held    int // bytes of heldBytes that are for this request
}

// maxHeld bounds the bodies that a worker gathers at a time to keep them. Beyond it
// answers pass without being kept.
const maxHeld = 16 << 20

// heldBytes is how much this worker holds.
var heldBytes int

// OnHttpRequestHeaders answers a request from what is kept, or lets it pass.
func (r *request) OnHttpRequestHeaders(_ int, end bool) types.Action {
	if r.rule = r.plugin.rules[wasmhost.RouteName()]; r.rule == nil {
		return types.ActionContinue // the route is of another version than the rules
	}
	headers, err := proxywasm.GetHttpRequestHeaders()
	if err != nil {
		return types.ActionContinue
	}
	r.ask = r.rule.Ask(headers, identityheader.Header, end)
	switch r.ask.Use {
	case httpcache.Bypass:
		r.rule.bypassed.Increment(1)
		r.status = "sluice; fwd=bypass"
		return types.ActionContinue
	case httpcache.Refresh:
		r.status = "sluice; fwd=request"
	case httpcache.Lookup:
		now := time.Now().UnixMilli()
		if e, ok := httpcache.Find(data{}, r.ask.Key, now/1000); ok && e.Stored >= r.rule.since {
			return r.reply(e, uint64(now))
		}
		r.status = "sluice; fwd=miss"
	}
	r.rule.misses.Increment(1)
	r.keeping = !r.ask.Head
	return types.ActionContinue
}

// reply answers with e. Envoy runs this through the filters before, which add the
// rate-limit headers and the request's id; of a HEAD request it leaves the body out.
func (r *request) reply(e httpcache.Entry, millis uint64) types.Action {
	r.rule.hits.Increment(1)
	status, headers, body := e.Reply(r.ask, millis)
	headers = append(headers, [2]string{"cache-status", "sluice; hit"})
	if err := proxywasm.SendHttpResponse(status, headers, body, -1); err != nil {
		proxywasm.LogError("cache: answer: " + err.Error())
		return types.ActionContinue
	}
	return types.ActionPause
}

// OnHttpResponseHeaders decides whether an answer of the product is kept.
func (r *request) OnHttpResponseHeaders(_ int, end bool) types.Action {
	if r.status == "" { // the answer is ours
		wasmhost.SetWindowHeader()
		return types.ActionContinue
	}
	if r.keeping {
		r.keeping = false
		if headers, err := proxywasm.GetHttpResponseHeaders(); err == nil {
			r.answer, r.keeping = r.rule.Answer(r.ask, headers, time.Now().Unix())
		}
		if r.keeping {
			r.status += "; stored"
		}
	}
	_ = proxywasm.AddHttpResponseHeader("cache-status", r.status)
	if end {
		r.keep()
	}
	return types.ActionContinue
}

// OnHttpResponseBody gathers the body of an answer that is to be kept, as it passes.
func (r *request) OnHttpResponseBody(size int, end bool) types.Action {
	if !r.keeping {
		return types.ActionContinue
	}
	if size > 0 {
		if r.held+size > int(r.rule.MaxBytes) || heldBytes+size > maxHeld {
			r.drop()
			return types.ActionContinue
		}
		part, err := proxywasm.GetHttpResponseBody(0, size)
		if err != nil || len(part) != size {
			r.drop()
			return types.ActionContinue
		}
		if r.body == nil && r.answer.Length > size {
			r.body = make([]byte, 0, r.answer.Length)
		}
		r.body = append(r.body, part...)
		r.held, heldBytes = r.held+size, heldBytes+size
	}
	if end {
		r.keep()
	}
	return types.ActionContinue
}

// OnHttpResponseTrailers keeps nothing that ends in trailers.
func (r *request) OnHttpResponseTrailers(int) types.Action {
	r.drop()
	return types.ActionContinue
}

// keep stores the whole answer.
func (r *request) keep() {
	if !r.keeping {
		return
	}
	if r.answer.Length < 0 || r.answer.Length == len(r.body) {
		now := time.Now().UnixMilli()
		e := httpcache.Entry{Key: r.ask.Key, Stored: uint64(now), Age: r.answer.Age, Status: r.answer.Status, Headers: r.answer.Headers, Body: r.body}
		if more, ok := httpcache.Put(data{}, e, r.ask.Share, r.answer.For, now/1000); ok {
			r.plugin.bytes.Add(int64(more))
			r.rule.in.Increment(1)
		}
	}
	r.drop()
}

// drop forgets what was gathered.
func (r *request) drop() {
	heldBytes -= r.held
	r.keeping, r.body, r.held = false, nil, 0
}

// OnHttpStreamDone is where the request ends.
func (r *request) OnHttpStreamDone() {
	r.drop()
	panicguard.Ended(r.context)
}
