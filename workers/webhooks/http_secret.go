package webhooks

import (
	"net/http"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/workers/webhooks/signature"
)

// rotate answers with the new secret, for the only time. The one before it signs
// as well until the overlap has passed.
func (h handlers) rotate(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Secret  string `json:"secret"`
		Overlap *int   `json:"overlap_seconds"` // absent: a day
	}
	if err := httpapi.Decode(w, r, bodyLimit, &in); err != nil {
		return err
	}
	overlap := DefaultOverlap
	if in.Overlap != nil {
		// Bounded before it is multiplied: a huge number must not come out small.
		overlap = time.Duration(min(max(*in.Overlap, -1), int(MaxOverlap/time.Second)+1)) * time.Second
	}
	account, id := who(r)
	s, err := h.Rotate(r.Context(), account, id, in.Secret, overlap)
	return answerSecret(w, http.StatusOK, s, err)
}

// verify lets receivers' authors check what they have received: it answers 200
// when the payload is signed with a secret of the subscription, or WEBHOOK_002.
func (h handlers) verify(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Payload   string `json:"payload"`   // the raw body, as text
		Signature string `json:"signature"` // X-Service-Signature
	}
	if err := httpapi.Decode(w, r, 2*MaxBody, &in); err != nil {
		return err
	}
	if in.Signature == "" {
		return apierror.Invalid([]decision.Detail{{Field: "signature", Issue: "is missing", Expected: "value of X-Service-Signature"}})
	}
	account, id := who(r)
	_, secrets, err := h.secrets(r.Context(), account, id)
	if err != nil {
		return err
	}
	for _, secret := range secrets {
		if err = signature.VerifyBody(secret, []string{in.Signature}, []byte(in.Payload)); err == nil {
			return httpapi.Result(w, http.StatusOK, map[string]bool{"valid": true}, nil)
		}
	}
	return err
}
