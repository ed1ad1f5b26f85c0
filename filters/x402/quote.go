package x402

import (
	"encoding/base64"
	"strconv"

	"sluice.dev/sluice/filters/decision"
)

// AppendQuote appends the body of a 402 (version 1) that asks for r. why is the
// protocol's `error`, which public clients want as text, so this is the one
// error without the platform's envelope: its code, request id and link stand
// beside it.
func AppendQuote(dst []byte, r Requirement, why Reason, requestID, docsBase string) []byte {
	dst = append(dst, `{"x402Version":1,"error":`...)
	dst = decision.AppendString(dst, string(why))
	dst = append(dst, `,"accepts":[`...)
	dst = AppendRequirement(dst, r)
	dst = append(dst, `],"code":`...)
	dst = decision.AppendString(dst, string(decision.PaymentRequired))
	dst = append(dst, `,"request_id":`...)
	dst = decision.AppendString(dst, requestID)
	dst = append(dst, `,"documentation_url":`...)
	dst = decision.AppendString(dst, decision.DocsURL(docsBase, decision.PaymentRequired))
	return append(dst, '}')
}

// AppendRequirement appends r as an element of `accepts` (version 1).
func AppendRequirement(dst []byte, r Requirement) []byte {
	dst = field(dst, `{"scheme":`, Scheme)
	dst = field(dst, `,"network":`, r.Network)
	dst = field(dst, `,"maxAmountRequired":`, strconv.FormatUint(r.Amount, 10))
	dst = field(dst, `,"resource":`, r.Resource)
	dst = field(dst, `,"description":`, r.Description)
	dst = field(dst, `,"mimeType":`, r.MimeType)
	dst = field(dst, `,"payTo":`, r.PayTo)
	return r.appendToken(dst)
}

// appendToken appends what both versions write alike, and closes the object.
func (r Requirement) appendToken(dst []byte) []byte {
	dst = append(dst, `,"maxTimeoutSeconds":`...)
	dst = strconv.AppendUint(dst, uint64(r.Seconds), 10)
	dst = field(dst, `,"asset":`, r.Asset)
	dst = field(dst, `,"extra":{"name":`, r.Name)
	dst = field(dst, `,"version":`, r.Version)
	return append(dst, "}}"...)
}

// HeaderV2 is the value of PAYMENT-REQUIRED, the quote of version 2.
func HeaderV2(r Requirement, why Reason) string {
	b := field(nil, `{"x402Version":2,"error":`, string(why))
	b = field(b, `,"resource":{"url":`, r.Resource)
	b = field(b, `,"description":`, r.Description)
	b = field(b, `,"mimeType":`, r.MimeType)
	b = field(b, `},"accepts":[{"scheme":`, Scheme)
	b = field(b, `,"network":`, caip(Chain(r.Network)))
	b = field(b, `,"amount":`, strconv.FormatUint(r.Amount, 10))
	b = field(b, `,"payTo":`, r.PayTo)
	return base64.StdEncoding.EncodeToString(append(r.appendToken(b), "]}"...))
}

func field(dst []byte, name, value string) []byte {
	return decision.AppendString(append(dst, name...), value)
}
