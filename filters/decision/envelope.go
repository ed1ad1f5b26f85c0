package decision

// AppendEnvelope appends the error envelope for d (contract 5.1) to dst:
//
//	{"error":{"code","message","details"?,"request_id","documentation_url"}}
//
// It is written by hand because the filters build it on the request path,
// where reflection costs too much; platform/http/httpapi tests that both agree.
// It takes time linear in what it writes, which is at most 16 KiB for a request
// id of ours.
func AppendEnvelope(dst []byte, d Decision, requestID, docsBase string) []byte {
	info := Lookup(d.Code)
	dst = append(dst, `{"error":{"code":`...)
	dst = AppendString(dst, string(info.Code))
	dst = append(dst, `,"message":`...)
	dst = AppendString(dst, info.Message)
	if d.Detail.Field != "" {
		dst = append(dst, `,"details":[{"field":`...)
		dst = AppendString(dst, Cut(d.Detail.Field, MaxName))
		dst = append(dst, `,"issue":`...)
		dst = AppendString(dst, Cut(d.Detail.Issue, MaxText))
		if d.Detail.Expected != "" {
			dst = append(dst, `,"expected":`...)
			dst = AppendString(dst, Cut(d.Detail.Expected, MaxText))
		}
		dst = append(dst, "}]"...)
	}
	dst = append(dst, `,"request_id":`...)
	dst = AppendString(dst, requestID)
	dst = append(dst, `,"documentation_url":`...)
	dst = AppendString(dst, DocsURL(docsBase, info.Code))
	return append(dst, "}}"...)
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
