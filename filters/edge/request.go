package main

import (
	"strconv"
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/authorize"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/host/panicguard"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/filters/limits/ratelimit"
)

// extra is what few requests have. Those that have none pay one question for all of it.
type extra struct {
	paid   *paidRequest // nil: not paid for
	stream *stream      // nil: not watched
}

// answerExtra is called with the head of the answer to such a request.
func (r *request) answerExtra() types.Action {
	if r.extra.stream != nil {
		r.extra.stream.begin()
		return types.ActionContinue
	}
	return r.settlePayment()
}

// endExtra is called at the end of such a request.
func (r *request) endExtra() {
	if r.extra.stream != nil {
		r.extra.stream.end()
		panicguard.Ended(r.context)
		return
	}
	r.usage.count()
	r.endPaidRequest(panicguard.Ended(r.context))
}

// request is one request on its way through the filter. Envoy calls its methods
// named On in the order in which they stand here.
type request struct {
	types.DefaultHttpContext
	plugin  *plugin
	context uint32 // Envoy's number of it
	rate    ratelimit.Result
	body    body
	extra   *extra
	began   int64 // unix seconds
	// answeredByEdge: the filter itself answered, in place of the route.
	answeredByEdge bool
	usage          usage
}

// OnHttpRequestHeaders lets the request pass, with our identity header in place
// of any that the client sent, or answers it.
func (r *request) OnHttpRequestHeaders(_ int, end bool) types.Action {
	at := time.Now()
	now := r.plugin.env.begin(at)
	v := authorize.Check(r.plugin.policy, wasmhost.RouteName(), &r.plugin.env, now)
	r.rate, r.began = v.Rate, now
	r.usage.begin(r.plugin, &v, at)
	if v.OK() {
		v.Decision = r.body.checkLength(v.Route.BodyLimit, end)
	}
	if v.OK() {
		v.Decision = r.identify(v, now)
	}
	if v.OK() {
		return types.ActionContinue
	}
	if v.Shadowed() {
		return r.passShadowed(&v, at, end)
	}
	if v.Code == decision.Watched {
		return r.openStream(&v, at, end)
	}
	if isPayable(v) {
		if v.Decision = r.body.checkLength(v.Route.BodyLimit, end); v.OK() {
			return r.claimPayment(v, now)
		}
	}
	allow := r.unmapped(&v, now)
	if v.OK() {
		r.send(204, [][2]string{{"allow", allow}, {"cache-control", "no-store"}}, nil)
		return types.ActionPause
	}
	r.noteRefusal(&v)
	return r.denyAllowing(v.Decision, allow)
}

// identify tells the product who calls, or that nobody known does. It refuses
// the request if it cannot: without the header a product would turn it away, or
// trust what the client sent under that name.
func (r *request) identify(v authorize.Verdict, now int64) decision.Decision {
	var err error
	if !v.Known {
		err = proxywasm.RemoveHttpRequestHeader(identityheader.Header)
	} else if value := r.plugin.callers.callerHeader(r.plugin.policy, v.Route.Product, v.Caller, v.Token, now); value != "" {
		err = proxywasm.ReplaceHttpRequestHeader(identityheader.Header, value)
		if err == nil {
			err = r.plugin.env.setClientAddress(&v.Caller, v.Token)
		}
	} else {
		return decision.Decision{Code: decision.EdgeNotReady, RetryAfter: 1}
	}
	if err != nil {
		return decision.Deny(decision.Internal)
	}
	return decision.Pass
}

// OnHttpRequestBody counts what the client sends, and ends a request whose body,
// sent without its length, turns out to be too large. What its product got so far
// is cut off.
func (r *request) OnHttpRequestBody(n int, _ bool) types.Action {
	r.usage.in += uint64(n)
	if r.body.addBytes(n) {
		return types.ActionContinue
	}
	return r.deny(tooLarge(r.body.limit))
}

// OnHttpResponseHeaders puts the rate headers on every response, Envoy's own
// included. A response to a request that the filter never saw has none to put.
func (r *request) OnHttpResponseHeaders(_ int, end bool) types.Action {
	if r.rate.Policy != "" { // limits in the shadow have no name
		wasmhost.SetRateHeaders(r.rate, r.began)
	}
	if r.answeredByEdge {
		wasmhost.SetWindowHeader()
	}
	r.usage.readStatus()
	if r.usage.rpc {
		r.usage.beginRPC(end)
	}
	if r.extra == nil {
		return types.ActionContinue
	}
	return r.answerExtra()
}

// OnHttpResponseBody counts what the client gets.
func (r *request) OnHttpResponseBody(size int, _ bool) types.Action {
	r.usage.out += uint64(size)
	return types.ActionContinue
}

// OnHttpStreamDone counts the request, and ends its payment.
func (r *request) OnHttpStreamDone() {
	if r.extra != nil {
		r.endExtra()
		return
	}
	r.usage.count()
	panicguard.Ended(r.context)
}

// deny answers with the error envelope of d.
func (r *request) deny(d decision.Decision) types.Action { return r.denyAllowing(d, "") }

// denyAllowing is deny with an Allow header, unless allow is empty. Envoy runs the answer
// through OnHttpResponseHeaders, which adds the rate headers.
func (r *request) denyAllowing(d decision.Decision, allow string) types.Action {
	r.usage.reason = d.Code
	if r.usage.rpc {
		return r.denyRPC(d)
	}
	headers := make([][2]string, 0, 5)
	headers = append(headers, [2]string{"content-type", "application/json"}, [2]string{"cache-control", "no-store"})
	status := decision.Lookup(d.Code).Status
	if status == 401 || status == 403 {
		if c := decision.Challenge(d, r.plugin.policy.DocsBase, wasmhost.Header(":path")); c != "" {
			headers = append(headers, [2]string{"www-authenticate", c})
		}
	}
	if allow != "" {
		headers = append(headers, [2]string{"allow", allow})
	}
	if d.RetryAfter > 0 {
		headers = append(headers, [2]string{"retry-after", strconv.Itoa(d.RetryAfter)})
	}
	body := decision.AppendEnvelope(nil, d, wasmhost.Header("x-request-id"), r.plugin.policy.DocsBase)
	r.send(uint32(status), headers, body)
	return types.ActionPause
}

// send answers in place of the route.
func (r *request) send(status uint32, headers [][2]string, body []byte) {
	r.answeredByEdge = true
	r.usage.setEdgeStatus(int(status))
	if err := proxywasm.SendHttpResponse(status, headers, body, -1); err != nil {
		proxywasm.LogError("edge: answer: " + err.Error())
	}
}
