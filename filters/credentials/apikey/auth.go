package apikey

import (
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
)

// maxHeader bounds an Authorization header that is looked at: a session token
// has about 1 kB.
const maxHeader = 8192

// Bearer returns the credential in an Authorization header (RFC 6750 section
// 2.1). The decision is authentication_required when there is none, and
// invalid_api_key, with what is wrong, when the header holds something else, or two
// values. It takes time linear in the header, of which it looks at no more than 8 KiB,
// and allocates nothing.
func Bearer(header string) (credential string, d decision.Decision) {
	if header == "" {
		return "", decision.Deny(decision.AuthRequired)
	}
	const scheme = "bearer "
	if len(header) <= len(scheme) || len(header) > maxHeader || !equalFold(header[:len(scheme)], scheme) {
		return "", refuseHeader(header)
	}
	if credential = header[len(scheme):]; !visible(credential) {
		return "", refuseText(Header, credential, Expected)
	}
	return credential, decision.Pass
}

// Bare returns the credential in the header name that holds a key and nothing else, such
// as X-API-Key. The decision is invalid_api_key when it holds two, or what no key has.
// It costs what Bearer does.
func Bare(name, header string) (credential string, d decision.Decision) {
	if len(header) > maxHeader || !visible(header) {
		return "", refuseBare(name, header)
	}
	return header, decision.Pass
}

// equalFold compares s with an ASCII string in lower case.
func equalFold(s, lower string) bool {
	for i := range len(lower) {
		c := s[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// Decide decides whether a key may be used at now, in unix seconds, by its record r.
// found says whether there is one, and ready whether the table has been loaded: before
// that an edge cannot know, so it refuses without blaming the key.
func Decide(r keytable.Record, found, ready bool, now int64) decision.Decision {
	switch {
	case !found && !ready:
		return decision.Decision{Code: decision.EdgeNotReady, RetryAfter: 1}
	case !found || r.Kind != keytable.KindKey:
		return decision.Deny(decision.InvalidKey)
	case r.Expired(now):
		return decision.Deny(decision.TokenExpired)
	}
	return decision.Pass
}

// Standing decides whether the account of a caller is in good standing, by the flags
// of its record.
func Standing(flags uint8) decision.Decision {
	switch {
	case flags&keytable.FlagUnpaid != 0:
		return decision.Deny(decision.Unpaid)
	case flags&keytable.FlagQuotaUsed != 0:
		return decision.Deny(decision.QuotaUsed)
	}
	return decision.Pass
}
