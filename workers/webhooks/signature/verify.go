package signature

import (
	"crypto/hmac"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// Tolerance is how far a request's timestamp may be from the receiver's clock.
const Tolerance = 5 * time.Minute

// Verify says whether h and body come from the holder of secret, at a time
// within Tolerance of now. It fails with WEBHOOK_002, and does not tell a
// wrong signature from a missing one.
//
// It takes time linear in body, which it reads once and does not copy, and in the
// headers.
func Verify(secret []byte, h http.Header, body []byte, now time.Time) error {
	seconds, err := strconv.ParseInt(h.Get(StandardTimestamp), 10, 64)
	at := time.Unix(seconds, 0)
	if err != nil || now.Sub(at).Abs() > Tolerance {
		return refused("The timestamp is missing or too far from the present.")
	}
	if !anyEqual(strings.Fields(h.Get(StandardSignature)), Standard(secret, h.Get(StandardID), at, body)) {
		return refused("")
	}
	return nil
}

// VerifyBody checks X-Service-Signature values alone: it proves who sent the
// body, not when. It fails with WEBHOOK_002.
func VerifyBody(secret []byte, values []string, body []byte) error {
	if !anyEqual(values, Body(secret, body)) {
		return refused("")
	}
	return nil
}

// anyEqual compares in constant time each of got, of which only the first few
// are looked at: a rotation has two.
func anyEqual(got []string, want string) bool {
	found := false
	for _, g := range got[:min(len(got), 8)] {
		if hmac.Equal([]byte(g), []byte(want)) {
			found = true
		}
	}
	return found
}

// refused is WEBHOOK_002; an empty message stands for the table's.
func refused(message string) error {
	return &apierror.Error{Code: decision.Webhook002, Message: message}
}
