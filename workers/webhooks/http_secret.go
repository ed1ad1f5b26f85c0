package webhooks

import (
	"net/http"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/workers/webhooks/signature"
)

// rotateRequest is the secret that is to take the place of the present one.
type rotateRequest struct {
	small
	Secret  string `json:"secret"`
	Overlap *int   `json:"overlap_seconds"` // absent: a day
}

// rotate answers with the new secret, for the only time. The one before it signs
// as well until the overlap has passed.
func (h handlers) rotate(r *http.Request, in rotateRequest) (withSecret, error) {
	overlap := DefaultOverlap
	if in.Overlap != nil {
		// Bounded before it is multiplied: a huge number must not come out small.
		overlap = time.Duration(min(max(*in.Overlap, -1), int(MaxOverlap/time.Second)+1)) * time.Second
	}
	account, id := who(r)
	s, err := h.Rotate(r.Context(), account, id, in.Secret, overlap)
	return withSecret{s}, err
}

// verifyRequest is what a receiver got.
type verifyRequest struct {
	Payload   string `json:"payload"`   // the raw body, as text
	Signature string `json:"signature"` // X-Service-Signature
}

// BodyLimit has room for the largest event in a JSON string.
func (verifyRequest) BodyLimit() int64 { return 2 * MaxBody }

// verified is the answer for a signature that holds.
type verified struct {
	Valid bool `json:"valid"`
}

// verify lets receivers' authors check what they have received: it answers 200
// when the payload is signed with a secret of the subscription, or WEBHOOK_002.
func (h handlers) verify(r *http.Request, in verifyRequest) (v verified, err error) {
	if in.Signature == "" {
		return v, apierror.Invalid([]decision.Detail{{Field: "signature", Issue: "is missing", Expected: "value of X-Service-Signature"}})
	}
	account, id := who(r)
	_, secrets, err := h.secrets(r.Context(), account, id)
	if err != nil {
		return v, err
	}
	for _, secret := range secrets {
		if err = signature.VerifyBody(secret, []string{in.Signature}, []byte(in.Payload)); err == nil {
			return verified{true}, nil
		}
	}
	return v, err
}
