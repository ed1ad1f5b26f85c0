package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// table names every parser of outside input. A package with a fuzz target has a
// row here, or a reason in the test beside this program.
func table() []parser {
	var all []parser
	for _, room := range [][]parser{filters(), documents(), parameters(), products(), runtime(), media()} {
		all = append(all, room...)
	}
	return all
}

// quietly makes of a parser that reports only whether it understood one with an
// error.
func quietly(read func(in []byte)) func([]byte) error {
	return func(in []byte) error { read(in); return nil }
}

// details makes of a parser that returns details one with an error.
func details(read func(in []byte) []decision.Detail) func([]byte) error {
	return func(in []byte) error { return apierror.Invalid(read(in)) }
}

// query is a parser of a query.
func query(read func(q url.Values) error) func([]byte) error {
	return func(in []byte) error {
		q, err := url.ParseQuery(string(in))
		if err != nil {
			return apierror.Invalid([]decision.Detail{{Field: "query", Issue: "is not valid"}})
		}
		return read(q)
	}
}

// errAnswer is an answer of a handler that is larger than the answer of an error
// may be.
var errAnswer = errors.New("a large answer")

// served is a parser behind a handler, which must answer with an error in bounds,
// or with success.
func served(h http.Handler, ask func(in []byte) *http.Request) func([]byte) error {
	return func(in []byte) error {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, ask(in))
		if w.Code >= 400 && w.Body.Len() > 16<<10 {
			panic(errAnswer)
		}
		return nil
	}
}
