// Package rules holds what OAuth 2.0 says about requests, apart from storage
// and HTTP: which parameters count, which redirect addresses match, what proves
// possession of a code, and how scopes narrow (RFC 6749, 7636, 8252, 9700).
package rules

// The error codes of RFC 6749 sections 4.1.2.1 and 5.2.
const (
	InvalidRequest          = "invalid_request"
	InvalidClient           = "invalid_client"
	InvalidGrant            = "invalid_grant"
	InvalidScope            = "invalid_scope"
	UnauthorizedClient      = "unauthorized_client"
	UnsupportedGrantType    = "unsupported_grant_type"
	UnsupportedResponseType = "unsupported_response_type"
	AccessDenied            = "access_denied"
	ServerError             = "server_error"
	TemporarilyUnavailable  = "temporarily_unavailable"
)

// Error is a refusal that a client may read. Description holds no secret and
// only characters that RFC 6749 lets it have.
type Error struct{ Code, Description string }

// Error gives code and description in one line.
func (e *Error) Error() string { return e.Code + ": " + e.Description }

// refuse makes an Error.
func refuse(code, description string) *Error { return &Error{code, description} }
