package httpapi

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// Text is a middleware that refuses a request whose path or query, decoded, is no
// UTF-8: what is made of it would be stored, and shown, as U+FFFD. It refuses one whose
// body is encoded, too, as Plain does, whoever would read it. It takes time
// linear in the address, and where that has an escape or is no ASCII what reading
// the query takes.
func (a Adapter) Text(next http.Handler) http.Handler {
	return a.Handle(func(w http.ResponseWriter, r *http.Request) error {
		if err := apierror.Invalid(notText(r)); err != nil {
			return err
		}
		if err := Plain(r); err != nil {
			return err
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

// notText reports what of r's address is no UTF-8.
func notText(r *http.Request) (list []decision.Detail) {
	bad := func(field string) {
		list = append(list, decision.Detail{Field: field, Issue: "is not text: invalid UTF-8", Expected: "text in UTF-8, percent-encoded"})
	}
	if !utf8.ValidString(r.URL.Path) {
		bad("path")
	}
	if !strings.Contains(r.URL.RawQuery, "%") && utf8.ValidString(r.URL.RawQuery) {
		return list
	}
	q := r.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(q)) {
		switch {
		case len(list) > decision.MaxDetails:
			return list
		case !utf8.ValidString(name):
			bad("query")
		case slices.ContainsFunc(q[name], func(v string) bool { return !utf8.ValidString(v) }):
			bad(name)
		}
	}
	return list
}
