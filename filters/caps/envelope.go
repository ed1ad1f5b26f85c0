package caps

import "sluice.dev/sluice/filters/decision"

// AppendEnvelope appends the error envelope for p (contract 5.1) to dst, with
// all its details: at most 16 KiB.
func (p *Problem) AppendEnvelope(dst []byte, requestID, docsBase string) []byte {
	return decision.AppendErrors(dst, p.Code, p.Details, requestID, docsBase)
}
