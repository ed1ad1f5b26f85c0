package rules

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strings"
)

// challengeLen is the length of a SHA-256 in base64url without padding.
const challengeLen = 43

// isChallenge reports whether s has the form of an S256 code challenge.
func isChallenge(s string) bool {
	return len(s) == challengeLen && !strings.ContainsFunc(s, func(r rune) bool { return !letterOrDigit(r) && r != '-' && r != '_' })
}

// VerifierFits reports whether a code verifier proves the challenge (RFC 7636
// section 4.6, S256). Both absent is right too; only one of them is not: whoever
// left it out may be someone else.
func VerifierFits(challenge, verifier string) bool {
	if challenge == "" || verifier == "" {
		return challenge == "" && verifier == ""
	}
	if len(verifier) < 43 || len(verifier) > 128 || strings.ContainsFunc(verifier, func(r rune) bool {
		return !letterOrDigit(r) && !strings.ContainsRune("-._~", r)
	}) {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(challenge)) == 1
}

// letterOrDigit reports whether r is one of ASCII's.
func letterOrDigit(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}
