package main

import (
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/host/panicguard"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/schema"
)

// request is one request on its way through the filter. Everything that goes
// wrong ends it: one that was not checked never goes on.
type request struct {
	types.DefaultHttpContext
	plugin  *plugin
	context uint32 // Envoy's number of it
	table   *schema.Table
	node    uint32            // that the body is held against; 0: none
	details []decision.Detail // of its parameters
	size    int               // bytes of the body that Envoy holds
	over    bool              // decided
}

// OnHttpStreamDone is where the request ends.
func (r *request) OnHttpStreamDone() { panicguard.Ended(r.context) }

// OnHttpRequestHeaders checks the parameters. It holds the headers while a body is
// to come that must be checked; where none is, it answers or lets the request pass.
func (r *request) OnHttpRequestHeaders(_ int, end bool) types.Action {
	if r.table = r.plugin.set.Table(wasmhost.RouteName()); r.table == nil {
		proxywasm.LogError("validate: the route has no table here")
		return r.answer(decision.Unavailable)
	}
	checker.Start(r.table)
	if r.table.HasTarget() {
		checker.Target(wasmhost.Header(":path"))
	}
	for i := range r.table.Headers() {
		value, err := proxywasm.GetHttpRequestHeader(r.table.Header(i))
		checker.Header(i, value, err == nil)
	}
	return r.body(end)
}

// body decides what becomes of the body.
func (r *request) body(end bool) types.Action {
	switch {
	case !r.table.HasBody():
		return r.decide()
	case end:
		checker.Absent()
		return r.decide()
	}
	r.details = checker.Details()
	contentType := wasmhost.Header("content-type")
	if contentType == "" && wasmhost.Header("content-length") == "0" {
		checker.Absent()
		return r.decide()
	}
	body := checker.Body(contentType)
	if body.Code == "" && body.Node == 0 {
		return r.decide()
	}
	if e := wasmhost.Header("content-encoding"); body.Code == "" && e != "" && e != "identity" {
		return r.answer(decision.MediaType, decision.EncodedBody(e))
	}
	if body.Code != "" && contentType != "" {
		return r.answer(body.Code, decision.Detail{Field: "Content-Type", Issue: "is " + decision.Cut(contentType, decision.MaxName), Expected: checker.Types()})
	}
	// A body without a type may still turn out to have no bytes.
	r.node = body.Node
	return types.ActionPause
}

// OnHttpRequestBody waits for the whole body; size counts all that is held.
func (r *request) OnHttpRequestBody(size int, end bool) types.Action {
	if r.over {
		return types.ActionContinue
	}
	r.size = size
	if !end {
		return types.ActionPause
	}
	return r.whole()
}

// OnHttpRequestTrailers is where a body with trailers ends.
func (r *request) OnHttpRequestTrailers(int) types.Action {
	if r.over {
		return types.ActionContinue
	}
	return r.whole()
}

// whole checks a body that has come to its end.
func (r *request) whole() types.Action {
	checker.Resume(r.table, r.details)
	if r.size == 0 {
		checker.Absent()
		return r.decide()
	}
	if r.node == 0 {
		return r.answer(decision.MediaType, decision.Detail{Field: "Content-Type", Issue: "is missing", Expected: checker.Types()})
	}
	body, err := proxywasm.GetHttpRequestBody(0, r.size)
	if err != nil {
		proxywasm.LogError("validate: read the body: " + err.Error())
		return r.answer(decision.Internal)
	}
	checker.JSON(r.node, body)
	return r.decide()
}

// decide lets the request pass, or answers with what is wrong.
func (r *request) decide() types.Action {
	r.over = true
	if r.details = checker.Details(); len(r.details) > 0 {
		return r.answer(decision.InvalidRequest, r.details...)
	}
	return types.ActionContinue
}

// answer sends the error envelope in the product's place.
func (r *request) answer(code decision.Code, details ...decision.Detail) types.Action {
	r.over = true
	body := decision.AppendErrors(nil, code, details, wasmhost.Header("x-request-id"), r.plugin.set.DocsBase)
	// Envoy runs this through the edge filter, which adds the rate headers.
	headers := [][2]string{{"content-type", "application/json"}, {"cache-control", "no-store"}}
	if err := proxywasm.SendHttpResponse(uint32(decision.Lookup(code).Status), headers, body, -1); err != nil {
		proxywasm.LogError("validate: answer: " + err.Error())
	}
	return types.ActionPause
}
