// Package httpcache decides which answers of a route are kept and given again, for whom,
// and for how long (RFC 9111), and keeps them in a fixed number of bytes. It calls no
// host and reads no clock.
//
// An answer is given again only to whom it was made for: keys have the account, plan and
// scopes of the caller as the edge has signed them, or its key, and never a credential.
package httpcache

import (
	"encoding/binary"
	"strings"

	"sluice.dev/sluice/filters/host/wire"
)

// Per says whose requests may get the same answer.
type Per uint8

// Whose requests may get the same answer.
const (
	PerAccount Per = iota // those of one account, plan and set of scopes
	PerKey                // those of one key or token
	PerNobody             // all that may call the route
)

// The names of the filter's metrics: of what an edge keeps, in bytes, and of its counters,
// behind which are what became of a request (hit, miss, bypass or stored), a dot and
// the name of its route.
const (
	BytesMetric    = "sluice_cache_bytes"
	CountersPrefix = "sluice_cache."
)

// DigestSize is the length of a Digest.
const DigestSize = 16

// Digest is of everything by which a route's answers come about. Answers of one digest are
// never given under another.
type Digest [DigestSize]byte

// Rule is what is kept of one route's answers.
type Rule struct {
	Key      string // of the route, as Envoy names it
	Route    string // its name
	Digest   Digest
	Per      Per
	TTL      uint32   // seconds: the longest that an answer is kept, and of one that does not say, how long
	MaxBytes uint32   // of a body that is kept
	Vary     []string // request headers, in small letters, that answers may differ by
}

// Limits of a set of rules.
const (
	MaxRules = 1000
	MaxVary  = 10
	MaxBody  = 1 << 20
	MaxSet   = 1 << 20 // bytes
	maxText  = 256
)

// setForm opens an encoded set of rules.
const setForm = "SLC\x01"

// Append encodes rules behind dst.
func Append(dst []byte, rules []Rule) []byte {
	dst = binary.AppendUvarint(append(dst, setForm...), uint64(len(rules)))
	for _, r := range rules {
		dst = wire.AppendText(wire.AppendText(dst, r.Key, maxText), r.Route, maxText)
		dst = append(append(dst, r.Digest[:]...), byte(r.Per))
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(r.TTL)), uint64(r.MaxBytes))
		dst = binary.AppendUvarint(dst, uint64(len(r.Vary)))
		for _, name := range r.Vary {
			dst = wire.AppendText(dst, name, maxText)
		}
	}
	return dst
}

// Parse reads what Append wrote, by key; ok is false for anything else.
//
// It takes time linear in b, of which it looks at no more than MaxSet bytes, and
// allocates at most 64 bytes for each of them, and 4 KiB.
func Parse(b []byte) (rules map[string]*Rule, ok bool) {
	if len(b) > MaxSet || !strings.HasPrefix(string(b[:min(len(b), len(setForm))]), setForm) {
		return nil, false
	}
	r := wire.NewReader(b[len(setForm):])
	n := r.CountOf(MaxRules, DigestSize+6)
	rules = make(map[string]*Rule, n)
	for range n {
		rule := &Rule{Key: r.Text(maxText), Route: r.Text(maxText)}
		for i := range rule.Digest {
			rule.Digest[i] = r.Byte()
		}
		rule.Per, rule.TTL, rule.MaxBytes = Per(r.Byte()), uint32(r.Number(1<<31)), uint32(r.Number(MaxBody))
		rule.Vary = make([]string, r.CountOf(MaxVary, 1))
		for i := range rule.Vary {
			rule.Vary[i] = r.Text(maxText)
		}
		if r.Failed() || rule.Per > PerNobody || rules[rule.Key] != nil {
			return nil, false
		}
		rules[rule.Key] = rule
	}
	return rules, r.Done()
}
