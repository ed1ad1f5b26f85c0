package main

import (
	"strconv"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/caps"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/host/panicguard"
	"sluice.dev/sluice/filters/host/wasmhost"
)

// request is one request on its way through the filter. Everything that goes
// wrong ends it: a body that was not checked never goes on.
type request struct {
	types.DefaultHttpContext
	plugin  *plugin
	context uint32 // Envoy's number of it
	size    int    // bytes of the body that Envoy holds
	over    bool   // decided
}

// OnHttpStreamDone is where the request ends.
func (r *request) OnHttpStreamDone() { panicguard.Ended(r.context) }

// OnHttpRequestHeaders holds the headers until the body is there. What the
// headers alone condemn is answered without waiting for it.
func (r *request) OnHttpRequestHeaders(_ int, end bool) types.Action {
	if e := wasmhost.Header("content-encoding"); e != "" && e != "identity" {
		return r.answer(&caps.Problem{Code: decision.MediaType, Details: []decision.Detail{decision.EncodedBody(e)}})
	}
	// A body without a length is bounded by the route's buffer: Envoy answers 413.
	if n, err := strconv.Atoi(wasmhost.Header("content-length")); err == nil && n > caps.DefaultMaxBytes {
		return r.answer(caps.TooLarge(caps.DefaultMaxBytes))
	}
	if end {
		return r.decide()
	}
	return types.ActionPause
}

// OnHttpRequestBody waits for the whole body; size counts all that is held.
func (r *request) OnHttpRequestBody(size int, end bool) types.Action {
	r.size = size
	if !end {
		return types.ActionPause
	}
	return r.decide()
}

// OnHttpRequestTrailers is where a body with trailers ends.
func (r *request) OnHttpRequestTrailers(int) types.Action {
	if r.over {
		return types.ActionContinue
	}
	return r.decide()
}

// decide caps the body, or answers.
func (r *request) decide() types.Action {
	r.over = true
	var body []byte
	if r.size > 0 {
		var err error
		if body, err = proxywasm.GetHttpRequestBody(0, r.size); err != nil {
			return r.fail("read the body", err)
		}
	}
	// The header goes on: the runtime does the same again, to no effect.
	strip := wasmhost.Header(caps.StripHeader) == "1"
	capped, report, bad := caps.Apply(nil, body, caps.Options{StripTools: strip})
	if bad != nil {
		return r.answer(bad)
	}
	// Most clients of ours send what is right already; it costs no copy then.
	if !report.Changed {
		return types.ActionContinue
	}
	if err := proxywasm.ReplaceHttpRequestBody(capped); err != nil {
		return r.fail("replace the body", err)
	}
	if wasmhost.Header("content-length") == "" {
		return types.ActionContinue // chunked
	}
	if err := proxywasm.ReplaceHttpRequestHeader("content-length", strconv.Itoa(len(capped))); err != nil {
		return r.fail("set the length", err)
	}
	return types.ActionContinue
}

// fail refuses a request that the host could not let us check.
func (r *request) fail(doing string, err error) types.Action {
	proxywasm.LogError("chatcaps: " + doing + ": " + err.Error())
	return r.answer(&caps.Problem{Code: decision.Internal})
}

// answer sends the error envelope in the product's place.
func (r *request) answer(p *caps.Problem) types.Action {
	r.over = true
	body := p.AppendEnvelope(nil, wasmhost.Header("x-request-id"), r.plugin.docs)
	// Envoy runs this through the edge filter, which adds the rate headers.
	headers := [][2]string{{"content-type", "application/json"}, {"cache-control", "no-store"}}
	if err := proxywasm.SendHttpResponse(uint32(decision.Lookup(p.Code).Status), headers, body, -1); err != nil {
		proxywasm.LogError("chatcaps: answer: " + err.Error())
	}
	return types.ActionPause
}
