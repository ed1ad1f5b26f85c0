package main

import (
	"context"
	"net/http/httptest"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/docs"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/web/docsite"
	"sluice.dev/sluice/web/docsite/reference"
)

// site is the documentation, around the pages of the reference.
var site = func() *docsite.Site {
	s, err := docsite.New(docs.Files, true)
	if err != nil {
		panic(err) // it is in the binary
	}
	return s
}()

// referencePages reads a document as the reference does, for its list and the page of an
// operation a.
func referencePages() parser {
	return parser{name: "web/docsite/reference: Pages", read: quietly(func(in []byte) {
		r := chi.NewRouter()
		(&reference.Pages{Document: func(context.Context) ([]byte, error) { return in, nil }, Site: site}).Routes(r, httpapi.Adapter{Log: silent})
		for _, path := range []string{"", "/a"} {
			r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", reference.Root+path, nil))
		}
	}), forms: in(`{"paths":{"/a":{"post":{"operationId":"a","description":%s}}}}`, `{"paths":{"/a":{"parameters":%s,"get":{"operationId":"a"}}}}`,
		`{"paths":{"/a":{"post":{"operationId":"a","requestBody":{"content":{"application/json":{"schema":%s}}}}}}}`,
		`{"paths":{"/a":{"post":{"operationId":"a","responses":{"200":{"content":{"a/b":{"schema":{"properties":%s}}}}}}}}}`), multiple: 256, constant: 2 << 20}
}

// searched is what search reads of a query. The index is made before the first is counted.
func searched() parser {
	find := func(in []byte) { _, _ = site.Find(context.Background(), string(in)) }
	find([]byte("a"))
	return parser{name: "web/docsite/search: Find", read: quietly(find), forms: texts("rate limit %s"), constant: 2 << 20}
}
