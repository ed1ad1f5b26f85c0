package main

import (
	"strings"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/gate"
	"sluice.dev/sluice/filters/wasmhost"
	"sluice.dev/sluice/filters/x402"
)

// forSale reports whether the request lacks nothing but a credential, and its
// route can be paid for in place of one. A credential that is not valid is never
// made good by money.
func forSale(v gate.Verdict) bool {
	return v.Code == decision.AuthRequired && v.Route != nil && v.Route.Price > 0
}

// requirement is what this request costs.
func (r *request) requirement(v gate.Verdict) x402.Requirement {
	path, _, _ := strings.Cut(wasmhost.Header(":path"), "?")
	p := r.plugin.policy
	return x402.Requirement{
		Terms: p.Payment, Amount: v.Route.Price, Resource: p.DocsBase + path,
		Description: "One call of " + v.Route.Name, MimeType: "application/json",
	}
}

// quote answers 402: what the request costs, and why it was not let through.
func (r *request) quote(q x402.Requirement, why x402.Reason) types.Action {
	r.plugin.denied.Increment(1)
	headers := make([][2]string, 0, 3)
	headers = append(headers, [2]string{"content-type", "application/json"}, [2]string{"cache-control", "no-store"})
	if q.V2 {
		headers = append(headers, [2]string{"payment-required", x402.HeaderV2(q, why)})
	}
	body := x402.AppendQuote(nil, q, why, wasmhost.Header("x-request-id"), r.plugin.policy.DocsBase)
	if err := proxywasm.SendHttpResponse(402, headers, body, -1); err != nil {
		proxywasm.LogError("edge: quote: " + err.Error())
	}
	return types.ActionPause
}
