package rules

import (
	"encoding/base64"
	"net/url"
	"strings"
)

// Credentials are what a client shows at the token endpoint.
type Credentials struct {
	ID, Secret string
	Header     bool // they came in the Authorization header
}

// ClientCredentials reads them from the Authorization header (its value, "" when
// there is none) or the form. It fails with invalid_request when both are used,
// and with invalid_client when there are none, or the header cannot be read.
//
// It takes time and memory linear in header.
func ClientCredentials(header string, f Form) (Credentials, *Error) {
	form := Credentials{ID: f.Get("client_id"), Secret: f.Get("client_secret")}
	if header == "" {
		if form.ID == "" {
			return form, refuse(InvalidClient, "client_id is missing.")
		}
		return form, nil
	}
	c := Credentials{Header: true}
	id, secret, ok := basic(header)
	if !ok {
		return c, refuse(InvalidClient, "The Authorization header is not HTTP Basic with a client's id and secret.")
	}
	c.ID, c.Secret = id, secret
	if form.Secret != "" || form.ID != "" && form.ID != id {
		return c, refuse(InvalidRequest, "The client authenticates in two ways.")
	}
	return c, nil
}

// basic reads id and secret, which are form-encoded before they become base64
// (RFC 6749 section 2.3.1).
func basic(header string) (id, secret string, ok bool) {
	scheme, encoded, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Basic") {
		return "", "", false
	}
	text, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return "", "", false
	}
	a, b, colon := strings.Cut(string(text), ":")
	id, err1 := url.QueryUnescape(a)
	secret, err2 := url.QueryUnescape(b)
	return id, secret, colon && err1 == nil && err2 == nil && id != "" && secret != ""
}
