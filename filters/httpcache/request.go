package httpcache

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

// Use says what becomes of a request.
type Use uint8

// What becomes of a request.
const (
	Bypass  Use = iota // neither is it answered from what is kept, nor its answer kept
	Refresh            // its answer may be kept
	Lookup             // it may be answered from what is kept, or its answer be kept
)

// Key is that of an answer.
type Key [sha256.Size]byte

// Ask is what a request asks of the cache.
type Ask struct {
	Use   Use
	Key   Key
	Share uint32 // whose share of the room the answer takes
	Head  bool   // no body is wanted
	Known bool   // the edge knows the caller

	noneMatch, modifiedSince string
}

// The headers of requests that make them none for the cache: they ask for a part, or for
// something to be done on a condition, or carry what the product may answer by and the
// edge does not judge.
var bypassed = map[string]bool{
	"range": true, "if-range": true, "if-match": true, "if-unmodified-since": true, "cookie": true, "upgrade": true, "x-payment": true, "payment-signature": true,
}

// Ask reads a request from its headers. identity is the name of the header in which the
// edge has signed who calls; end says that the request has no body.
//
// It takes time linear in the headers.
func (r *Rule) Ask(headers [][2]string, identity string, end bool) (a Ask) {
	values := make([]string, len(r.Vary))
	var method, host, path, who string
	credential, fresh := false, true
	for _, h := range headers {
		switch name, value := h[0], h[1]; {
		case name == ":method":
			method = value
		case name == ":authority":
			host = value
		case name == ":path":
			path = value
		case name == identity:
			who = value
		case name == "authorization":
			credential = true
		case name == "if-none-match":
			a.noneMatch += "," + value
		case name == "if-modified-since":
			a.modifiedSince = value
		case name == "cache-control" || name == "pragma":
			c := parseControl(value)
			if c.noStore || c.onlyIfCached {
				return a
			}
			fresh = fresh && !c.noCache && (!c.hasMaxAge || c.maxAge > 0)
		case bypassed[name]:
			return a
		}
		for i, name := range r.Vary {
			if h[0] == name {
				values[i] += "\x00" + h[1]
			}
		}
	}
	a.Head = method == "HEAD"
	scope, ok := r.scopeOf(who)
	if !ok || method != "GET" && !a.Head || !end || who == "" && credential {
		return a
	}
	a.Known = who != ""
	a.Key = r.key(scope, host, path, values)
	a.Share = r.share(scope)
	if a.Use = Lookup; !fresh {
		a.Use = Refresh
	}
	return a
}

// scopeOf is whose answers a caller may get, from what the edge has signed of it, such as
// v2;u=shop;a=acct_…;k=key_…;p=pro;s=a:b;e=1;m=…; ok is false for a caller without an
// account, whose request is paid for.
func (r *Rule) scopeOf(identity string) (scope string, ok bool) {
	if identity == "" {
		return "nobody", true
	}
	var account, key, plan, scopes string
	for part := range strings.SplitSeq(identity, ";") {
		switch name, value, _ := strings.Cut(part, "="); name {
		case "a":
			account = value
		case "k":
			key = value
		case "p":
			plan = value
		case "s":
			scopes = value
		}
	}
	if account == "" {
		return "", false
	}
	switch r.Per {
	case PerNobody:
		return "anybody", true
	case PerKey:
		return "key " + account + " " + key + " " + plan + " " + scopes, true
	}
	return "account " + account + " " + plan + " " + scopes, true
}

// key digests what tells answers apart, each part behind its length.
func (r *Rule) key(scope, host, path string, values []string) Key {
	b := make([]byte, 0, 512)
	b = append(b, r.Digest[:]...)
	for _, part := range [...]string{r.Key, scope, host, path} {
		b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
	}
	for _, value := range values {
		b = append(binary.AppendUvarint(b, uint64(len(value))), value...)
	}
	return sha256.Sum256(b)
}

// share numbers whoever's share an answer takes: the account's, or, of answers that are
// nobody's, the route's.
func (r *Rule) share(scope string) uint32 {
	if rest, ok := strings.CutPrefix(scope, "account "); ok {
		scope = rest
	} else if rest, ok := strings.CutPrefix(scope, "key "); ok {
		scope = rest
	} else {
		scope = " " + r.Route
	}
	account, _, _ := strings.Cut(scope, " ")
	if account != "" {
		scope = account
	}
	sum := sha256.Sum256([]byte(scope))
	return binary.LittleEndian.Uint32(sum[:])
}
