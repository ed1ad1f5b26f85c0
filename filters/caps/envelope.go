package caps

import "sluice.dev/sluice/filters/decision"

// AppendEnvelope appends the error envelope for p (contract 5.1) to dst, with
// all its details: at most 16 KiB. It is written by hand because the filter builds it inside
// Envoy, where reflection costs too much.
func (p *Problem) AppendEnvelope(dst []byte, requestID, docsBase string) []byte {
	info := decision.Lookup(p.Code)
	field := func(before, value string) {
		dst = append(dst, before...)
		dst = decision.AppendString(dst, value)
	}
	field(`{"error":{"code":`, string(info.Code))
	field(`,"message":`, info.Message)
	for i, d := range p.Details {
		open := `},{"field":`
		if i == 0 {
			open = `,"details":[{"field":`
		}
		field(open, d.Field)
		field(`,"issue":`, d.Issue)
		field(`,"expected":`, d.Expected)
	}
	if len(p.Details) > 0 {
		dst = append(dst, "}]"...)
	}
	field(`,"request_id":`, requestID)
	field(`,"documentation_url":`, decision.DocsURL(docsBase, info.Code))
	return append(dst, "}}"...)
}
