// Package openapitest holds handlers against the OpenAPI document beside them:
// each answer is as described, and what is served is described, and the other
// way round.
package openapitest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/go-chi/chi/v5"
)

// Contract is a document that answers are held against.
type Contract struct {
	doc    *openapi3.T
	router routers.Router
}

// pages lets answers be HTML, once for the process.
var pages = sync.OnceFunc(func() {
	openapi3filter.RegisterBodyDecoder("text/html", openapi3filter.PlainBodyDecoder)
})

// read keeps the contracts of documents that were read already.
var read sync.Map

// New reads a document, YAML or JSON, and fails the test when it is not valid.
func New(t testing.TB, text []byte) *Contract {
	t.Helper()
	if c, ok := read.Load(string(text)); ok {
		return c.(*Contract)
	}
	pages()
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	doc.Servers = nil // they are no part of what a handler sees
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	c := &Contract{doc, router}
	read.Store(string(text), c)
	return c
}

// options accept an answer only as described, by JSON Schema where the document
// is of a version that has it.
func (c *Contract) options() *openapi3filter.Options {
	o := &openapi3filter.Options{IncludeResponseStatus: true}
	if strings.HasPrefix(c.doc.OpenAPI, "3.1") {
		o.SchemaValidationOptions = []openapi3.SchemaValidationOption{openapi3.EnableJSONSchema2020()}
	}
	return o
}

// Check fails the test when the answer to r is not as described, or r is not
// described at all.
func (c *Contract) Check(t testing.TB, r *http.Request, status int, header http.Header, body []byte) {
	t.Helper()
	route, params, err := c.router.FindRoute(r)
	if err != nil {
		t.Errorf("%s %s is not described: %v", r.Method, r.URL.Path, err)
		return
	}
	in := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route},
		Status:                 status, Header: header, Body: io.NopCloser(bytes.NewReader(body)), Options: c.options(),
	}
	if err := openapi3filter.ValidateResponse(t.Context(), in); err != nil {
		t.Errorf("%s %s: %d is not as described: %v\n%s", r.Method, r.URL.Path, status, err, body)
	}
}

// Handler is h, each answer of which is checked. Answers to requests that no
// path of the document is for, and 404 and 405 of the router, are let by.
func (c *Contract) Handler(t testing.TB, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		asked := r.Clone(r.Context())
		h.ServeHTTP(rec, r)
		if _, _, err := c.router.FindRoute(asked); err == nil && rec.Code < 500 && rec.Code != http.StatusNotModified {
			c.Check(t, asked, rec.Code, rec.Header(), rec.Body.Bytes())
		}
		for k, v := range rec.Header() {
			w.Header()[k] = v
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	})
}

// Operations are the operations of the document, as GET /v1/streams/{id}.
func (c *Contract) Operations() []string {
	var list []string
	for path, item := range c.doc.Paths.Map() {
		for method := range item.Operations() {
			list = append(list, method+" "+path)
		}
	}
	slices.Sort(list)
	return list
}

// Served lists the routes of r like Operations, but for those that skip names.
func Served(t testing.TB, r chi.Routes, skip func(path string) bool) []string {
	t.Helper()
	var list []string
	err := chi.Walk(r, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if route != "/" {
			route = strings.TrimSuffix(route, "/")
		}
		if skip == nil || !skip(route) {
			list = append(list, method+" "+route)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

// Same fails the test unless what is served is described and the other way round.
func Same(t testing.TB, served, described []string) {
	t.Helper()
	for _, op := range served {
		if !slices.Contains(described, op) {
			t.Errorf("%s is served and not described", op)
		}
	}
	for _, op := range described {
		if !slices.Contains(served, op) {
			t.Errorf("%s is described and not served", op)
		}
	}
}
