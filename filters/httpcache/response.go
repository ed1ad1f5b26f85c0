package httpcache

import (
	"slices"
	"strings"
	"time"
)

// notKept are the headers of an answer that are of the connection, or of the request that
// it was made for; the present request has its own.
var notKept = []string{":status", "age", "alt-svc", "cache-status", "connection", "content-length", "keep-alive", "proxy-authenticate", "proxy-authentication-info",
	"proxy-connection", "ratelimit", "ratelimit-policy", "server-timing", "te", "trailer", "traceparent", "traceresponse", "tracestate", "transfer-encoding", "upgrade", "x-request-id"}

// ownPrefixes begin the names of others that are of one request.
var ownPrefixes = []string{"x-ratelimit-", "x-envoy-", "x-sluice-"}

// maxHeaders bounds the headers that are kept, in bytes.
const maxHeaders = 16 << 10

// Answer is an answer that may be kept, without its body.
type Answer struct {
	Status  uint16
	Headers [][2]string // that are kept
	Age     uint32      // that it has already, in seconds
	For     uint32      // seconds for which it is kept
	Length  int         // of its body as the headers say; -1: they do not
}

// kept are the statuses of answers that are kept. Errors are not: a product that fails for
// a moment would fail for as long as they were kept.
var kept = map[string]uint16{"200": 200, "203": 203, "300": 300, "301": 301, "308": 308}

// Answer reads an answer to a from its headers, at now in unix seconds; ok is false for
// one that is not kept.
//
// It takes time linear in the headers.
func (r *Rule) Answer(a Ask, headers [][2]string, now int64) (s Answer, ok bool) {
	s.Length = -1
	var cacheControl, vary, expires, status, contentType string
	size := 0
	for _, h := range headers {
		switch name, value := h[0], h[1]; name {
		case ":status":
			status = value
		case "set-cookie", "www-authenticate", "content-range":
			return s, false
		case "cache-control":
			cacheControl += "," + value
		case "vary":
			vary += "," + value
		case "expires":
			expires += value
		case "content-type":
			contentType = value
		case "age":
			s.Age = max(s.Age, seconds(value))
		case "content-length":
			s.Length = int(seconds(value))
		}
		if !slices.Contains(notKept, h[0]) && !slices.ContainsFunc(ownPrefixes, func(p string) bool { return strings.HasPrefix(h[0], p) }) {
			s.Headers = append(s.Headers, h)
			size += len(h[0]) + len(h[1])
		}
	}
	if s.Status, ok = kept[status]; !ok || contentType == "" || size > maxHeaders || s.Length > int(r.MaxBytes) {
		return s, false
	}
	c := parseControl(cacheControl)
	if c.noStore || c.private || c.noCache || !r.varies(vary) {
		return s, false
	}
	if r.Per == PerNobody && a.Known && !c.public && !c.hasShared && !c.mustRevalidate { // RFC 9111, 3.5
		return s, false
	}
	s.For = lifetime(c, expires, r.TTL, now)
	if s.For <= s.Age {
		return s, false
	}
	s.For -= s.Age
	return s, true
}

// varies reports whether the rule's keys tell apart all that Vary names.
func (r *Rule) varies(vary string) bool {
	for name := range strings.SplitSeq(vary, ",") {
		if name = strings.ToLower(strings.TrimSpace(name)); name != "" && !slices.Contains(r.Vary, name) {
			return false
		}
	}
	return true
}

// lifetime is for how many seconds an answer is fresh, ttl at most. One that does not say
// is fresh for ttl.
func lifetime(c control, expires string, ttl uint32, now int64) uint32 {
	switch {
	case c.hasShared:
		return min(ttl, c.sharedMaxAge)
	case c.hasMaxAge:
		return min(ttl, c.maxAge)
	case expires != "":
		at, err := time.Parse("Mon, 02 Jan 2006 15:04:05 GMT", expires)
		if err != nil {
			return 0
		}
		return uint32(min(int64(ttl), max(0, at.Unix()-now)))
	}
	return ttl
}
