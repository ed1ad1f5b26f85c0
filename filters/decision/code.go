// Package decision defines the error codes with their statuses, and the outcome of
// a check, for the filters, the control plane and the runtime. It imports the standard library only and compiles under TinyGo.
package decision

// Code names one kind of failure. It is the `code` of the error envelope
// (contract 5.1), so a published code never changes its meaning.
type Code string

// The codes of the platform. Those in capitals are of contract 1.3 and of
// contract 5.5 to contract 5.10, invalid_request and rate_limit_exceeded of
// contract 5.4; the others are for conditions that these do not cover
// (contract 5.11).
const (
	Stream001    Code = "STREAM_001"
	Stream002    Code = "STREAM_002"
	Stream003    Code = "STREAM_003"
	Stream004    Code = "STREAM_004"
	Stream005    Code = "STREAM_005"
	Transcode001 Code = "TRANSCODE_001"
	Transcode002 Code = "TRANSCODE_002"
	Transcode003 Code = "TRANSCODE_003"
	TokenExpired Code = "AUTH_001"
	ScopeMissing Code = "AUTH_002"
	AddrRefused  Code = "AUTH_003"
	Unpaid       Code = "BILLING_001"
	QuotaUsed    Code = "BILLING_002"
	PlanTooLow   Code = "BILLING_003"
	Storage001   Code = "STORAGE_001"
	Storage002   Code = "STORAGE_002"
	Webhook001   Code = "WEBHOOK_001"
	Webhook002   Code = "WEBHOOK_002"

	RouteNotMapped  Code = "ROUTE_NOT_MAPPED"
	InvalidRequest  Code = "invalid_request"
	RateLimited     Code = "rate_limit_exceeded"
	ConnectionLimit Code = "connection_limit_reached"
	UpgradeRefused  Code = "upgrade_refused"
	AuthRequired    Code = "authentication_required"
	InvalidKey      Code = "invalid_api_key"
	InvalidToken    Code = "invalid_token"
	InvalidCert     Code = "invalid_certificate"
	PaymentRequired Code = "payment_required"
	NotFound        Code = "not_found"
	MethodRefused   Code = "method_not_allowed"
	Conflict        Code = "conflict"
	Precondition    Code = "precondition_failed"
	KeyReused       Code = "idempotency_key_reused"
	TooLarge        Code = "request_too_large"
	MediaType       Code = "unsupported_media_type"
	HeadersTooLarge Code = "headers_too_large"
	RepeatedHeader  Code = "repeated_header"
	Timeout         Code = "request_timeout"
	EdgeNotReady    Code = "edge_not_ready"
	Unavailable     Code = "service_unavailable"
	BadGateway      Code = "bad_gateway"
	GatewayTimeout  Code = "gateway_timeout"
	NotImplemented  Code = "not_implemented"
	Internal        Code = "internal"
)

// Watched is no failure and goes to nobody: it says of a request that passes that its
// stream is watched.
const Watched Code = "watched"

// Info says what a code means: the HTTP status that goes with it, one sentence
// for the caller, and what the caller can do about it.
type Info struct {
	Code    Code
	Status  int // 0: the condition has no HTTP response of its own
	Message string
	Remedy  string
}

// Lookup returns the table's row for c. An unknown code gets the row of
// Internal, so that a slip never sends an undocumented status.
func Lookup(c Code) Info {
	for i := range table {
		if table[i].Code == c {
			return table[i]
		}
	}
	return table[len(table)-1]
}

// OfReply is the code with which Envoy's own answers with a status go out; empty when there
// is none.
func OfReply(status int) Code {
	switch status {
	case 400, 426: // 426: HTTP/1.0
		return InvalidRequest
	case 403:
		return RouteNotMapped
	case 404:
		return NotFound
	case 405:
		return MethodRefused
	case 408:
		return Timeout
	case 413:
		return TooLarge
	case 429:
		return RateLimited
	case 431:
		return HeadersTooLarge
	case 500:
		return Internal
	case 501:
		return NotImplemented
	case 502:
		return BadGateway
	case 503:
		return Unavailable
	case 504:
		return GatewayTimeout
	}
	return ""
}

// All returns every row, in the order in which the documentation lists them.
func All() []Info { return append([]Info(nil), table[:]...) }

// DocsURL is the page that documents c, as the envelope's documentation_url;
// base is the public address of the gateway without a trailing slash.
func DocsURL(base string, c Code) string { return base + "/docs/errors/" + string(c) }
