package decision

import "unicode/utf8"

// AppendEnvelope appends the error envelope for d (contract 5.1) to dst:
//
//	{"error":{"code","message","details"?,"request_id","documentation_url"}}
//
// It is written by hand because the filters build it on the request path,
// where reflection costs too much; platform/http/httpapi tests that both agree.
// It takes time linear in what it writes, which is at most 16 KiB for a request
// id of ours.
func AppendEnvelope(dst []byte, d Decision, requestID, docsBase string) []byte {
	var details []Detail
	if d.Detail.Field != "" {
		details = []Detail{d.Detail}
	}
	return AppendErrors(dst, d.Code, details, requestID, docsBase)
}

// maxDetailBytes is how much of an envelope details take before the last of them.
const maxDetailBytes = 14 << 10

// AppendErrors is AppendEnvelope with all of details that have room: MaxDetails, and
// the last of them More when some are left out.
func AppendErrors(dst []byte, code Code, details []Detail, requestID, docsBase string) []byte {
	info := Lookup(code)
	start := len(dst)
	dst = append(dst, `{"error":{"code":`...)
	dst = AppendString(dst, string(info.Code))
	dst = append(dst, `,"message":`...)
	dst = AppendString(dst, info.Message)
	for i, d := range Bounded(details) {
		before := `,{"field":`
		if i == 0 {
			before = `,"details":[{"field":`
		}
		full := len(dst)-start > maxDetailBytes
		if full {
			d = More
		}
		dst = AppendText(append(dst, before...), d.Field)
		dst = append(dst, `,"issue":`...)
		dst = AppendText(dst, d.Issue)
		if d.Expected != "" {
			dst = append(dst, `,"expected":`...)
			dst = AppendText(dst, d.Expected)
		}
		if dst = append(dst, '}'); full {
			break
		}
	}
	if len(details) > 0 {
		dst = append(dst, ']')
	}
	dst = append(dst, `,"request_id":`...)
	dst = AppendString(dst, requestID)
	dst = append(dst, `,"documentation_url":`...)
	dst = AppendString(dst, DocsURL(docsBase, info.Code))
	return append(dst, "}}"...)
}

// AppendText appends s to dst as a JSON string, in UTF-8. What is not UTF-8 becomes
// U+FFFD.
func AppendText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < 0x20 || r == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', '0'+byte(r>>4), "0123456789abcdef"[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

// AppendString appends s to dst as a JSON string. Bytes that are not printable
// ASCII are written as escapes of single bytes' code points: every string that
// reaches here is ours or an identifier, and the result is always valid JSON.
func AppendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20 || c >= 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
