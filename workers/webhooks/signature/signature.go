// Package signature signs what is delivered and verifies what was received.
//
// Each request carries two independent signatures. X-Service-Signature is that
// of contract 7.3: lowercase hexadecimal HMAC-SHA256 of the raw body. It does
// not cover the time, so it cannot tell a replay. webhook-signature is that of
// Standard Webhooks 1.0.0: base64 HMAC-SHA256 of "id.timestamp.body", which can.
package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a delivery.
const (
	Header          = "X-Service-Signature"
	HeaderPrevious  = "X-Service-Signature-Previous" // with the former secret, during a rotation
	HeaderID        = "X-Service-Event-Id"
	HeaderTimestamp = "X-Service-Timestamp" // unix seconds of this attempt

	StandardID        = "Webhook-Id"
	StandardTimestamp = "Webhook-Timestamp"
	StandardSignature = "Webhook-Signature"
)

// Body returns the value of X-Service-Signature.
func Body(secret, body []byte) string {
	return hex.EncodeToString(mac(secret, body))
}

// Standard returns one entry of webhook-signature, such as "v1,K5oZ…=".
func Standard(secret []byte, id string, at time.Time, body []byte) string {
	signed := make([]byte, 0, len(id)+len(body)+16)
	signed = append(append(signed, id...), '.')
	signed = append(strconv.AppendInt(signed, at.Unix(), 10), '.')
	signed = append(signed, body...)
	return "v1," + base64.StdEncoding.EncodeToString(mac(StandardKey(secret), signed))
}

// StandardKey is the key that Standard Webhooks libraries sign with. They take
// a text "whsec_" + base64 and use the bytes it stands for; a secret of that
// form is therefore decoded. Any other secret is used as it is: its owner hands
// the library the base64 of it.
func StandardKey(secret []byte) []byte {
	if encoded, ok := strings.CutPrefix(string(secret), "whsec_"); ok {
		if key, err := base64.StdEncoding.DecodeString(encoded); err == nil && len(key) > 0 {
			return key
		}
	}
	return secret
}

// Set puts the signature headers of one attempt on h. secrets are one or two:
// the first is the present one; the second, if any, is the one before it, still valid during a
// rotation: webhook-signature holds an entry for each. X-Service-Signature is
// always the present secret's alone, because receivers compare it as a whole.
func Set(h http.Header, secrets [][]byte, id string, at time.Time, body []byte) {
	SetIdentity(h, id, at)
	standard := make([]string, len(secrets))
	for i, s := range secrets {
		h.Set([]string{Header, HeaderPrevious}[i], Body(s, body))
		standard[i] = Standard(s, id, at, body)
	}
	h.Set(StandardSignature, strings.Join(standard, " "))
}

// SetIdentity puts on h what tells one delivery from another: the event's id,
// the same on each attempt, and the time of the attempt.
func SetIdentity(h http.Header, id string, at time.Time) {
	seconds := strconv.FormatInt(at.Unix(), 10)
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, seconds)
	h.Set(StandardID, id)
	h.Set(StandardTimestamp, seconds)
}

// mac is HMAC-SHA256.
func mac(key, msg []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(msg)
	return h.Sum(nil)
}
