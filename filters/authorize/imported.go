package authorize

import (
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/policy"
)

// keyOf returns the key in one of the policy's key headers; authentication_required
// when there is none. A request that brings two credentials, in two of them or in
// one beside Authorization, of which bearer says what it held, is refused: which
// one counts would be a guess.
func keyOf(p *policy.Policy, env Env, bearer decision.Decision) (key string, d decision.Decision) {
	d = decision.Deny(decision.AuthRequired)
	for _, name := range p.KeyHeaders {
		header := env.Header(name)
		if header == "" {
			continue
		}
		if bearer.Code != decision.AuthRequired || d.Code != decision.AuthRequired {
			return "", decision.Decision{Code: decision.RepeatedHeader,
				Detail: decision.Detail{Field: name, Issue: "stands beside another credential", Expected: "one credential"}}
		}
		key, d = apikey.Bare(name, header)
	}
	return key, d
}

// checkBareKey decides about a request with a key in a header of its own, which is
// never a token; d is what keyOf said of it.
func checkBareKey(p *policy.Policy, route *policy.Route, env Env, key string, d decision.Decision, now int64) Verdict {
	if d.OK() {
		if tag, ok := env.Keys().Tag(key); ok {
			return checkKey(p, route, env, key, tag, now)
		}
		if hasImports(env, key) {
			return checkImported(p, route, env, key, now)
		}
		d = apikey.Malformed(key)
	}
	return decideByAddress(p, route, env, d, now)
}

// hasImports reports whether text may be a key that another system issued: it has
// what such a key must have, and there are any. An edge that has not loaded its table
// yet cannot know.
func hasImports(env Env, text string) bool {
	if !apikey.Importable(text) {
		return false
	}
	r, found := env.Record(keytable.TagOfImports())
	return found && r.Kind == keytable.KindImports || !found && !env.Ready()
}

// checkImported finds the record of a key that another system issued. Such a text has
// no checksum, so to look for one is to hash it. Those that are no key are counted in
// guessWindow, as tokens that are none, and while that is full only texts are looked
// for that this worker has found before.
func checkImported(p *policy.Policy, route *policy.Route, env Env, text string, now int64) Verdict {
	tag, known := env.Keys().Imported(text)
	if !known {
		if rate := guessWindow(p, env, now, env.Look); !rate.OK {
			return refuseGuess(route, rate)
		}
		tag = apikey.TagOfImported(text)
	}
	r, found := env.Record(tag)
	if found {
		env.Keys().Keep(text, tag)
	}
	d := apikey.Decide(r, found, found || env.Ready(), now)
	if d.Code == decision.InvalidKey {
		guessWindow(p, env, now, env.Take)
		d = refuseImported(text)
	}
	if !d.OK() {
		return decideByAddress(p, route, env, d, now)
	}
	return authorizeCaller(p, route, env, &r, "", now)
}
