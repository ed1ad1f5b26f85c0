package config

import (
	"maps"
	"slices"
)

// ValidateRequest is the value of a route's validate.
const ValidateRequest = "request"

// Request describes the requests of a route, as OpenAPI does. Edges hold requests
// to it where the route says validate: request.
type Request struct {
	Parameters []Parameter  `json:"parameters,omitempty"` // those that it does not name pass
	Body       *RequestBody `json:"body,omitempty"`       // none: bodies are not looked at
}

// Parameter is a value in the path, the query or a header.
type Parameter struct {
	// Name is that of a variable of the path, of a query parameter or of a header.
	Name     string     `json:"name"`
	In       string     `json:"in"` // path, query or header
	Required bool       `json:"required,omitempty"`
	Schema   JSONSchema `json:"schema"`
	// Style is how an array is written: simple in a path and a header; in the query
	// form, spaceDelimited or pipeDelimited. Empty: simple or form.
	Style string `json:"style,omitempty"`
	// Explode says that a query parameter is repeated for each element of an array.
	// None: true for form, false for the others.
	Explode *bool `json:"explode,omitempty"`
}

// RequestBody is the body of a request.
type RequestBody struct {
	Required bool `json:"required,omitempty"`
	// Content gives, for each media type that may be sent, what a body of it must be.
	// application/* and */* stand for all that no other names.
	Content map[string]MediaType `json:"content"`
}

// MediaType is what a body of one media type must be.
type MediaType struct {
	Schema JSONSchema `json:"schema,omitempty"` // of JSON; empty: the body is not looked at
}

// Equal reports whether two requests say the same.
func (r *Request) Equal(o *Request) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r == o || slices.EqualFunc(r.Parameters, o.Parameters, Parameter.Equal) && r.Body.Equal(o.Body)
}

// Equal reports whether two parameters say the same.
func (p Parameter) Equal(o Parameter) bool {
	explode := equalAt(p.Explode, o.Explode)
	p.Explode, o.Explode = nil, nil
	return explode && p == o
}

// Equal reports whether two bodies say the same.
func (b *RequestBody) Equal(o *RequestBody) bool {
	if b == nil || o == nil {
		return b == o
	}
	return b.Required == o.Required && maps.Equal(b.Content, o.Content)
}
