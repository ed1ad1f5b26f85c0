package x402

import "sluice.dev/sluice/filters/decision"

// How an edge and the control plane talk about payments: the path of claims, and
// the headers of the answers.
const (
	ClaimsPath    = "/hub/v1/claims"
	IDHeader      = "x-sluice-payment"
	ReasonHeader  = "x-sluice-reason"
	ReceiptHeader = "x-payment-response"
)

// AppendClaim appends the body of a claim: text is the JSON of a payment, which
// Parse has taken, for r.
func AppendClaim(dst []byte, r Requirement, text []byte, route, requestID string) []byte {
	dst = append(dst, `{"x402Version":1,"paymentPayload":`...)
	dst = append(dst, text...)
	dst = append(dst, `,"paymentRequirements":`...)
	dst = AppendRequirement(dst, r)
	dst = append(dst, `,"route":`...)
	dst = decision.AppendString(dst, route)
	dst = append(dst, `,"request_id":`...)
	dst = decision.AppendString(dst, requestID)
	return append(dst, '}')
}
