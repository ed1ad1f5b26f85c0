package main

import (
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/authorize"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/limits/traffic"
	"sluice.dev/sluice/filters/policy"
)

// passShadowed lets a request pass that only requirements in the shadow of its route
// refuse, and has it counted and logged with what would have refused it.
func (r *request) passShadowed(v *authorize.Verdict, at time.Time, end bool) types.Action {
	would := v.Decision
	if v.Route.Stream != policy.Unwatched {
		action := r.openStream(v, at, end)
		if r.extra != nil { // it has passed
			r.noteShadowed(would)
		}
		return action
	}
	if v.Decision = r.body.checkLength(v.Route.BodyLimit, end); v.OK() {
		v.Decision = r.identify(*v, at.Unix())
	}
	if !v.OK() {
		r.noteRefusal(v)
		return r.deny(v.Decision)
	}
	r.noteShadowed(would)
	return types.ActionContinue
}

// noteShadowed has the request counted and logged with what would have refused it.
func (r *request) noteShadowed(would decision.Decision) {
	r.usage.reason = decision.Code(traffic.Would(string(would.Code)))
	if err := proxywasm.SetProperty([]string{edgeapi.WouldState}, appendRefusal(nil, would)); err != nil {
		proxywasm.LogWarn("edge: what would have refused a request is not noted: " + err.Error())
	}
}
