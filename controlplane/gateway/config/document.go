// Package config is the declarative configuration of the platform: which
// products there are, which routes lead to them, what a route demands of its
// caller, and what plans allow. A Document is what people write; this package
// reads it, finds every fault in it before anything is published, compiles it
// into the policy that edges decide by, and keeps every version in Postgres.
//
// Package xds turns the same Document into Envoy's resources.
package config

import (
	"slices"
	"time"
)

// Document is a whole configuration. docs/config.md explains it for users.
//
// What a short document leaves out, Expand puts in: a stored version says all of it.
type Document struct {
	// Include names what stands below this document: builtin, the routes of the
	// platform itself, or for `sluice apply` and `sluice validate` a file or folder
	// beside this one. A stored version has what they stand for in their place.
	Include []string `json:"include,omitempty"`
	// Remove names what must not be there of what is included, such as
	// routes.sluice.docs, or routes.sluice.docs* for all that begin so.
	Remove []string `json:"remove,omitempty"`
	// AccessLog says which requests edges log: "all", "failures" (status 400 and
	// above) or "off". Empty: failures.
	AccessLog string `json:"access_log,omitempty"`
	// RequestLog says what is kept for a day of failed requests and of a sample of the
	// others: "full", "no_path" (all but the path, which may name people or things) or
	// "off". Empty: full.
	RequestLog string `json:"request_log,omitempty"`
	// AnonymousPerMinute bounds the requests of one client address without a
	// valid credential. 0: 600.
	AnonymousPerMinute uint32 `json:"anonymous_per_minute,omitempty"`
	// TrustedProxies is how many proxies stand before the edges and add the
	// address that they see to X-Forwarded-For; the client's is the one before
	// theirs. 0: whoever connects is the client.
	TrustedProxies uint32 `json:"trusted_proxies,omitempty"`
	// KeyHeaders are headers that may hold an API key by itself, such as X-API-Key,
	// in place of Authorization: Bearer. None: that alone is read.
	KeyHeaders []string `json:"key_headers,omitempty"`
	// ClientCertificates says whose client certificates are believed; absent: nobody's.
	ClientCertificates *ClientCertificates `json:"client_certificates,omitempty"`

	// Certificates are those that edges show by the name that a client asks for; for
	// other names they show the one in SLUICE_TLS_CERT.
	Certificates []Certificate `json:"certificates,omitempty"`

	Issuers  []Issuer  `json:"issuers,omitempty"` // besides this platform
	Classes  []Class   `json:"classes"`           // absent: default, with 600 requests a minute
	Plans    []Plan    `json:"plans,omitzero"`    // absent: those of builtin; without it free, with the limits of the classes
	Scopes   []string  `json:"scopes"`            // every scope that routes may ask for; absent: those that they ask for
	Products []Product `json:"products"`
	X402     *X402     `json:"x402,omitempty"` // who is paid for routes that have a price
	// Engines are those of products that need one; absent: the built-in ones.
	Engines *Engines `json:"engines,omitempty"`
	Routes  []Route  `json:"routes"`
}

// Class is a group of routes that share one rate limit of an account.
type Class struct {
	Name      string `json:"name"`
	PerMinute uint32 `json:"per_minute"`      // for plans that do not say otherwise
	Burst     uint32 `json:"burst,omitempty"` // requests above PerMinute in a short burst
	// Shadow counts what the limit would refuse on the class's routes, and refuses nothing.
	Shadow bool `json:"shadow,omitempty"`
	// WhenCutOff is CutOffAvailable or CutOffStrict; empty: CutOffAvailable.
	WhenCutOff string `json:"when_cut_off,omitempty"`
	// Connections is how many connections and streams of the class's routes one account
	// may have open at once, where a plan does not say otherwise. It counts on routes with
	// upgrades or streaming. 0: any number.
	Connections uint32 `json:"connections,omitempty"`
	// ConnectionsPerKey is how many of them one API key may have. 0: any number.
	ConnectionsPerKey uint32 `json:"connections_per_key,omitempty"`
}

// Plan is what an account has bought: its limits by name of class, the products
// that it may use, the tokens that its chat completions may take, and how many
// requests it may make in a month.
type Plan struct {
	Name     string           `json:"name"`
	Limits   map[string]Limit `json:"limits,omitempty"`
	Products []string         `json:"products,omitempty"` // none: all
	Features []string         `json:"features,omitempty"` // that routes may ask for
	Tokens   *TokenBudget     `json:"tokens,omitempty"`   // none: no budget
	Quota    *Quota           `json:"quota,omitempty"`    // none: no quota
	Media    *Media           `json:"media,omitempty"`    // none: see MediaOf
	Price    *PlanPrice       `json:"price,omitempty"`    // none: no invoices
}

// Quota is how much of the platform an account may use in a month of UTC. 0: any
// amount.
type Quota struct {
	Requests int64 `json:"requests,omitempty"` // that edges let through
}

// TokenBudget is how many tokens, of prompts and completions, an account may
// use in a day and in a month of UTC. 0: any number.
type TokenBudget struct {
	Daily   int64 `json:"daily,omitempty"`
	Monthly int64 `json:"monthly,omitempty"`
}

// Limit bounds one account in one class.
type Limit struct {
	PerMinute uint32 `json:"per_minute"`
	Burst     uint32 `json:"burst,omitempty"`
	// Connections and ConnectionsPerKey are as in Class. 0: as the class says.
	Connections       uint32 `json:"connections,omitempty"`
	ConnectionsPerKey uint32 `json:"connections_per_key,omitempty"`
}

// The listeners of an edge.
const (
	Gateway = "gateway"
	Runtime = "runtime"
)

// Route maps methods and a path to a product, or answers at the edge.
type Route struct {
	Name     string   `json:"name"`
	Listener string   `json:"listener,omitempty"` // empty: gateway
	Hosts    []string `json:"hosts,omitempty"`    // names, or *.example.com; none: all
	Methods  []string `json:"methods,omitempty"`  // none: all; GET includes HEAD
	// Path is literal (/v1/streams), has variables for whole segments
	// (/v1/streams/{id}), or ends in /* for everything below.
	Path    string        `json:"path"`
	Headers []HeaderMatch `json:"headers,omitempty"` // all of which must match
	Rewrite *Rewrite      `json:"rewrite,omitempty"`
	CORS    *CORS         `json:"cors,omitempty"` // goes before the product's
	Product string        `json:"product,omitempty"`
	Respond *Respond      `json:"respond,omitempty"` // instead of Product
	// Redirect sends callers elsewhere, instead of Product.
	Redirect *Redirect `json:"redirect,omitempty"`
	// Split gives parts of the requests to versions of the product. Headers are
	// looked at first, in the order of the list.
	Split []ProductVersion `json:"split,omitempty"`
	// Sticky keeps callers at the version that they have met: "credential", by what
	// they send as one; whoever sends none is at Product. Empty: each request is drawn
	// by itself.
	Sticky  string   `json:"sticky,omitempty"`
	Mirror  *Mirror  `json:"mirror,omitempty"`
	Retries *Retries `json:"retries,omitempty"` // absent: as the product says
	// RequestHeaders are changed on the way to the product, and ResponseHeaders in its
	// answers.
	RequestHeaders  *HeaderEdit `json:"request_headers,omitempty"`
	ResponseHeaders *HeaderEdit `json:"response_headers,omitempty"`
	// Compress lets edges compress answers of texts, for clients that ask for it. Not
	// for answers that show a secret beside what somebody else may have sent.
	Compress bool `json:"compress,omitempty"`
	// Auth lists who gets in: "key", "token" (of this platform or an issuer),
	// "session" (a token that the product checks too), "certificate" (of the client,
	// see client_certificates) and "none" (anybody).
	// Absent: key.
	Auth  []string `json:"auth,omitzero"`
	Scope string   `json:"scope,omitempty"` // needed of the caller; empty: none
	Class string   `json:"class,omitempty"` // empty: the first class
	// Shadow lists what of the route is checked, counted and shown, and lets everybody
	// pass: "scope", "limit" (of the class) and "quota" (of plans).
	Shadow []string `json:"shadow,omitempty"`
	// Cache has edges keep answers; nil: they keep none.
	Cache *Cache `json:"cache,omitempty"`
	// Feature is what the caller's plan must have among its features.
	Feature string `json:"feature,omitempty"`
	// ForwardCredentials lets the Authorization header, and the document's
	// key_headers, go on to the product.
	ForwardCredentials bool `json:"forward_credentials,omitempty"`
	// ForwardCertificate tells the product the SHA-256 and the subject of the client's
	// certificate, as x-sluice-client-certificate. Auth is then certificate alone.
	ForwardCertificate bool `json:"forward_certificate,omitempty"`
	// Streaming gives the route an idle timeout in place of a total one.
	Streaming bool     `json:"streaming,omitempty"`
	Timeout   Duration `json:"timeout,omitempty"` // 30s; when streaming or upgraded, of silence: 5m
	// Upgrades lists what a request may turn its connection into: websocket. None: such
	// requests get 403.
	Upgrades []string `json:"upgrades,omitempty"`
	// Lifetime is how long one connection or stream may last, of a route with upgrades or
	// streaming. Empty: as long as both ends like.
	Lifetime Duration `json:"lifetime,omitempty"`
	// BodyLimit is how many bytes a request's body may have; larger ones get 413.
	// 0: 10 MiB, and any number when streaming. With chat_caps, whose filter must
	// see all of it, 0 is 64 KiB, and with validate: request 1 MiB.
	BodyLimit uint64 `json:"body_limit,omitempty"`
	// ChatCaps applies the limits of chat requests to the body.
	ChatCaps bool `json:"chat_caps,omitempty"`
	// Validate says what edges check before the product gets a request: "request",
	// that it is as Request says; others get 400 with every bad field. Empty:
	// nothing.
	Validate string   `json:"validate,omitempty"`
	Request  *Request `json:"request,omitempty"`
	// Price lets callers without a credential pay for one request: an amount in
	// whole units of the token of X402, such as "0.01". Empty: not for sale.
	Price string `json:"price,omitempty"`
}

// Respond is an answer that the edge gives by itself.
type Respond struct {
	Status      uint32 `json:"status"`
	Body        string `json:"body,omitempty"`
	ContentType string `json:"content_type,omitempty"` // empty: application/json
}

// Duration is a time such as "1500ms", "30s" or "5m", as text.
type Duration string

// Or returns the duration, or def when it is empty or not valid; Validate has
// refused the latter.
func (d Duration) Or(def time.Duration) time.Duration {
	v, err := time.ParseDuration(string(d))
	if err != nil {
		return def
	}
	return v
}

// ListenerName returns the listener that r belongs to.
func (r Route) ListenerName() string {
	if r.Listener == "" {
		return Gateway
	}
	return r.Listener
}

// Matches returns the methods that r matches; none: all.
func (r Route) Matches() []string {
	if slices.Contains(r.Methods, "GET") && !slices.Contains(r.Methods, "HEAD") {
		return append(slices.Clone(r.Methods), "HEAD")
	}
	return r.Methods
}
