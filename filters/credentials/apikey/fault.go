package apikey

import (
	"strings"

	"sluice.dev/sluice/filters/decision"
)

// Header is where a credential is expected, and Expected how a key stands there.
const (
	Header   = "Authorization"
	Expected = "Authorization: Bearer <API key>"
)

// Missing says of a request without a credential where a key is expected.
var Missing = decision.Detail{Field: Header, Issue: "is missing", Expected: Expected}

// What follows is said of what is refused, and of nothing else. It says what the form of
// keys says, which everybody may know: neither whether there is such a key, nor any part
// of what was sent. All texts are constants.

func refuse(field, issue, expected string) decision.Decision {
	return decision.Decision{Code: decision.InvalidKey, Detail: decision.Detail{Field: field, Issue: issue, Expected: expected}}
}

// refuseHeader refuses an Authorization header that does not begin with Bearer and a
// blank, has nothing behind them, or is too long.
func refuseHeader(header string) decision.Decision {
	const basic = "basic "
	switch {
	case len(header) > maxHeader:
		return tooLong(Header)
	case len(header) >= len(basic) && equalFold(header[:len(basic)], basic):
		return refuse(Header, "has the scheme Basic, which is not read here", Expected)
	case strings.EqualFold(strings.TrimRight(header, " "), "bearer"):
		return refuse(Header, "has nothing behind Bearer", Expected)
	}
	return refuse(Header, "does not begin with Bearer and a blank", Expected)
}

// refuseBare refuses a header that has more in it than a key, or what no key has.
func refuseBare(name, header string) decision.Decision {
	const bearer = "bearer "
	switch {
	case len(header) > maxHeader:
		return tooLong(name)
	case len(header) >= len(bearer) && equalFold(header[:len(bearer)], bearer):
		return refuse(name, "begins with Bearer", "the API key alone")
	}
	return refuseText(name, header, "the API key alone")
}

// tooLong refuses a header that is longer than any credential.
func tooLong(name string) decision.Decision {
	return refuse(name, "is longer than any credential", "at most 8192 bytes")
}

// refuseText refuses a text with characters in it that no credential has.
func refuseText(field, text, expected string) decision.Decision {
	issue := "has characters in it that no credential has"
	switch {
	case strings.IndexByte(text, ',') >= 0:
		issue = "has a comma in it, as if it were several"
	case strings.IndexByte(text, ' ') >= 0:
		issue = "has a blank before the credential, in it or behind it"
	}
	return refuse(field, issue, expected)
}

// others are the beginnings of texts that are sent in place of a key, and what they are.
var others = [...][2]string{
	{"key_", "is the id of a key, not the key itself"},
	{"sk_", "is the key of a stream or of another service, not an API key of this one"},
	{"slc_", "is the secret of an OAuth app, not an API key"},
	{"slr_", "is a refresh token of OAuth, not an API key"},
	{"slcode_", "is a code of OAuth, not an API key"},
	{"sess_", "is the id of a session, not an API key"},
	{"acct_", "is the id of an account, not an API key"},
	{"whsec_", "is the secret of a webhook, not an API key"},
	{"$", "is the name of a variable, not its value"},
	{`"`, "stands in quotation marks"},
	{"'", "stands in quotation marks"},
	{"<", "stands in angle brackets"},
}

// Malformed refuses a text that WellFormed does not take, and says what is wrong with it.
// It takes time linear in text, and allocates nothing.
func Malformed(text string) decision.Decision {
	const whole = "the whole text of a key: slk_ and 52 more characters"
	if strings.HasPrefix(text, Prefix) {
		switch {
		case len(text) < KeyLen:
			return refuse("key", "is too short: its end is missing", whole)
		case len(text) > KeyLen:
			return refuse("key", "is too long: something stands behind it", whole)
		case !WellFormed(text):
			return refuse("key", "is mistyped: its checksum does not fit", whole)
		}
		return decision.Deny(decision.InvalidKey)
	}
	if LooksLikeToken(text) {
		return refuse("key", "is a token, not an API key", whole)
	}
	for _, o := range others {
		if strings.HasPrefix(text, o[0]) {
			return refuse("key", o[1], whole)
		}
	}
	return refuse("key", "does not begin with slk_", whole)
}
