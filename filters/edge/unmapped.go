package main

import (
	"sluice.dev/sluice/filters/authorize"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/routehint"
)

// maxHints bounds how often in a second a worker looks for what comes near a request that
// no route takes. One look among 2,000 routes takes about a millisecond.
const maxHints = 50

// known is what this worker's VM has read of the routes of the listeners.
var known hints

// hints are the texts of routes that were read last, one for each listener, and how many
// looks the present second has left.
type hints struct {
	texts  [2]struct{ sum, text string }
	second int64
	left   int
}

// take takes a look from those of the second; it reports whether there was one.
func (h *hints) take(now int64) bool {
	if h.second != now {
		h.second, h.left = now, maxHints
	}
	h.left--
	return h.left >= 0
}

// text is what the control plane says of the routes of the request's listener.
func (h *hints) text() string {
	sum := wasmhost.RouteTextSum()
	if sum == "" {
		return ""
	}
	for _, t := range h.texts {
		if t.sum == sum {
			return t.text
		}
	}
	h.texts[1] = h.texts[0]
	h.texts[0].sum, h.texts[0].text = sum, wasmhost.RouteText()
	return h.texts[0].text
}

// unmapped completes the refusal of a request that no route takes by the methods that its
// path has, or the nearest route. allow is the value of the Allow header; "" for none.
// A request for OPTIONS of a path that is mapped is not refused: v passes, and is to be
// answered with allow. Callers who have asked too often learn nothing more.
func (r *request) unmapped(v *authorize.Verdict, now int64) (allow string) {
	if v.Route == nil || v.Code != v.Route.Deny || v.Code != decision.RouteNotMapped && v.Code != decision.NotFound {
		return ""
	}
	method := wasmhost.Header(":method")
	if !v.Rate.OK || !known.take(now) {
		if method == "OPTIONS" { // it may have been a good one
			if v.Decision = (decision.Decision{Code: decision.RateLimited, RetryAfter: 1}); !v.Rate.OK {
				v.Decision = authorize.RefuseAddress(v.Rate)
			}
		}
		return ""
	}
	hint := routehint.Find(known.text(), wasmhost.Header(":authority"), wasmhost.Header(":path"))
	v.Detail = hint.Detail(method)
	if hint.Methods == "" {
		return ""
	}
	if method == "OPTIONS" {
		v.Decision = decision.Pass
	}
	return hint.Methods + ", OPTIONS"
}
