package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/filters/httpcache"
)

// Cache has edges keep answers of a route and give them again.
type Cache struct {
	// TTL is for how long an answer is kept at most, and how long one that does not say.
	TTL Duration `json:"ttl"`
	// Per says whose requests get the same answer: those of one "account" with the same
	// plan and scopes, of one "key", or of everybody ("nobody" in particular). Empty:
	// account.
	Per string `json:"per,omitempty"`
	// Vary are request headers by which answers differ, besides Accept and
	// Accept-Encoding.
	Vary []string `json:"vary,omitempty"`
	// MaxBytes is the largest body that is kept. 0: 64 KiB.
	MaxBytes uint32 `json:"max_bytes,omitempty"`
	// Purged is when what was kept was last thrown away; `sluice cache purge` sets it.
	Purged string `json:"purged,omitempty"`
}

const (
	defaultCached = 64 << 10
	maxCacheTTL   = 24 * time.Hour
	maxCacheVary  = httpcache.MaxVary - 2
)

// alwaysVary are headers by which products choose among forms of an answer, whether they
// say so or not.
var alwaysVary = []string{"accept", "accept-encoding"}

var perNames = map[string]httpcache.Per{"": httpcache.PerAccount, "account": httpcache.PerAccount, "key": httpcache.PerKey, "nobody": httpcache.PerNobody}

// cache checks what a route says of its cache. Edges tell callers apart by what they have
// checked themselves: a route whose product does that too has none.
func (v *validator) cache(f string, r Route) {
	c := r.Cache
	if c == nil {
		return
	}
	if d, err := time.ParseDuration(string(c.TTL)); err != nil || d < time.Second || d > maxCacheTTL || d%time.Second != 0 {
		v.add(f+".ttl", "is not a number of seconds", "1s to 24h, such as 30s or 5m")
	}
	v.oneOf(f+".per", c.Per, "", "account", "key", "nobody")
	if len(r.Split) > 0 {
		v.add(f, "stands on a route with split", "a route without: the answers of one version would be given to requests for another")
	}
	if len(r.Upgrades) > 0 {
		v.add(f, "stands on a route with upgrades", "a route without: what connections carry is not kept")
	}
	if c.MaxBytes > httpcache.MaxBody {
		v.add(f+".max_bytes", "is too large", fmt.Sprintf("at most %d", httpcache.MaxBody))
	}
	for i, name := range v.within(f+".vary", c.Vary, maxCacheVary) {
		at, lower := fmt.Sprintf("%s.vary[%d]", f, i), strings.ToLower(name)
		switch {
		case !headerForm.MatchString(name):
			v.add(at, "is not the name of a header", "letters, digits and dashes, such as Accept-Language")
		case slices.Contains(notVaried, lower) || strings.HasPrefix(lower, "x-sluice-"):
			v.add(at, "is a header by which no answers are kept", "a header that holds no credential, such as Accept-Language")
		case slices.Contains(c.Vary[:i], name):
			v.add(at, "is given twice", "")
		}
	}
	if c.Purged != "" {
		if _, err := time.Parse(time.RFC3339, c.Purged); err != nil {
			v.add(f+".purged", "is not a time", "such as 2026-01-31T12:00:00Z")
		}
	}
	for issue, is := range map[string]bool{
		"is of a route without a product":                        r.Product == "",
		"is of a route whose callers the product checks":         slices.Contains(r.Auth, "session") || r.ForwardCredentials,
		"is of a route that is sold":                             r.Price != "",
		"is of a streaming route":                                r.Streaming,
		"is of a route that answers neither GET nor HEAD":        len(r.Methods) > 0 && !slices.Contains(r.Methods, "GET") && !slices.Contains(r.Methods, "HEAD"),
		"is of a route whose bodies are held to the chat limits": r.ChatCaps,
	} {
		if is {
			v.add(f, issue, "no cache here, or another route")
		}
	}
}

// notVaried are headers that are credentials, or that the cache reads itself.
var notVaried = []string{"authorization", "cookie", "proxy-authorization", "range", "if-range", "if-match",
	"if-none-match", "if-modified-since", "if-unmodified-since", "cache-control", "pragma", "host", "x-payment", "payment-signature"}

// caches bounds the routes with a cache.
func (v *validator) caches(list []Route) {
	n := 0
	for _, r := range list {
		if r.Cache != nil {
			n++
		}
	}
	v.atMost("routes with a cache", n, httpcache.MaxRules)
}

// equalCache compares what two routes say of their caches.
func equalCache(a, b *Cache) bool { return a == b || reflect.DeepEqual(a, b) }

// Caches reports whether a route of d has a cache.
func (d Document) Caches() bool {
	return slices.ContainsFunc(d.Routes, func(r Route) bool { return r.Cache != nil })
}

// CacheRule is what edges keep of the answers of r, which leads to p and is known to Envoy
// by key. What was kept before either changed is not given any more.
func (r Route) CacheRule(p Product, key string) (rule httpcache.Rule, err error) {
	text, err := json.Marshal(struct {
		Route   Route
		Product Product
	}{r, p})
	if err != nil {
		return rule, err
	}
	sum := sha256.Sum256(text)
	rule = httpcache.Rule{Key: key, Route: r.Name, Digest: httpcache.Digest(sum[:httpcache.DigestSize]), Per: perNames[r.Cache.Per],
		TTL: uint32(r.Cache.TTL.Or(0) / time.Second), MaxBytes: cmp.Or(r.Cache.MaxBytes, defaultCached), Vary: slices.Clone(alwaysVary)}
	for _, name := range r.Cache.Vary {
		if name = strings.ToLower(name); !slices.Contains(rule.Vary, name) {
			rule.Vary = append(rule.Vary, name)
		}
	}
	return rule, nil
}
