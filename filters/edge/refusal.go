package main

import (
	"strings"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"sluice.dev/sluice/filters/authorize"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/filters/policy"
)

// noteRefusal leaves what the request log shall know of a request that is refused
// before any product gets it: why, and whose it is. It stands where a product would
// find the identity, in the same form, and has no signature, so that nobody takes it
// for one. Requests that pass pay nothing for it.
func (r *request) noteRefusal(v *authorize.Verdict) {
	caller := v.Owner
	if v.Known {
		caller = &v.Caller
	}
	presented := ""
	if v.Route != nil && v.Route.Deny != "" { // nobody has looked for whose it is
		caller, presented = authorize.Presented(r.plugin.policy, &r.plugin.env)
	}
	value := refusal(r.plugin.policy, v.Decision, caller, v.Token)
	if presented != "" {
		value += ";n=" + presented
	}
	if err := proxywasm.ReplaceHttpRequestHeader(identityheader.Header, value); err != nil {
		proxywasm.LogWarn("edge: why a request was refused is not noted: " + err.Error())
	}
}

// refusal is what noteRefusal leaves; a nil caller is nobody known.
func refusal(p *policy.Policy, d decision.Decision, caller *keytable.Record, token string) string {
	b := appendRefusal(append(make([]byte, 0, 256), "refused;"...), d)
	if caller == nil || p == nil {
		return string(b)
	}
	b = append(append(b, ";a="...), keytable.FormatID(keytable.AccountPrefix, caller.Account)...)
	b = append(append(b, ";k="...), credentialID(caller, token)...)
	if plan, ok := p.Plan(caller.Plan); ok {
		b = append(append(b, ";p="...), plan.Name...)
	}
	b = append(b, ";s="...)
	return string(b) + strings.Join(p.ScopeNames(caller.Scopes), ",")
}

// appendRefusal appends why a request was refused, or would have been.
func appendRefusal(b []byte, d decision.Decision) []byte {
	b = append(append(b, "c="...), d.Code...)
	for _, part := range [][2]string{{";f=", d.Detail.Field}, {";i=", d.Detail.Issue}, {";x=", d.Detail.Expected}} {
		if part[1] != "" {
			b = append(append(b, part[0]...), strings.ReplaceAll(part[1], ";", ",")...)
		}
	}
	return b
}
