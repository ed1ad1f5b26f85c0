package config

import (
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/paging"
)

// history answers GET config/versions: a page, with ?before= of the versions older than that.
func (h handlers) history(r *http.Request, _ httpapi.None) (out paging.List[Entry], err error) {
	q := r.URL.Query()
	p, details := Versions.Parse(q)
	before := int64(0)
	if text := q.Get("before"); text != "" {
		if before, err = strconv.ParseInt(text, 10, 64); err != nil || before < 1 {
			details = append(details, decision.Detail{Field: "before", Issue: "is not valid", Expected: "the number of a version"})
		}
	}
	if err := apierror.Invalid(details); err != nil {
		return out, err
	}
	return h.Store.Page(r.Context(), before, p)
}

// Described is a version with what it changed.
type Described struct {
	Version
	Against int64    `json:"against"` // the version that changes are counted from; 0: none
	Changes []Change `json:"changes"`
}

// SetHeaders says the number of the version.
func (d Described) SetHeaders(h http.Header) { h.Set("ETag", etag(d.Number)) }

// version answers GET config/versions/{version}.
func (h handlers) version(r *http.Request, _ httpapi.None) (out Described, err error) {
	v, err := h.pathVersion(r)
	if err != nil {
		return out, err
	}
	var other Version
	if against := r.URL.Query().Get("against"); against == "" {
		other, err = h.Store.Before(r.Context(), v.Number)
	} else {
		other, err = h.numbered(r, "against", against)
	}
	return Described{v, other.Number, differences(other.Document, v.Document)}, err
}

// rollback answers POST config/versions/{version}/rollback.
func (h handlers) rollback(r *http.Request, _ httpapi.None) (out PutResult, err error) {
	ifMatch, err := parseIfMatch(r.Header.Get("If-Match"))
	if err != nil {
		return out, err
	}
	old, err := h.pathVersion(r)
	if err != nil {
		return out, err
	}
	return h.change(r, rollbackNote(old.Number), replaceBy(old.Document, ifMatch))
}

// pathVersion returns the version that the path names.
func (h handlers) pathVersion(r *http.Request) (Version, error) {
	return h.numbered(r, "version", chi.URLParam(r, "version"))
}

// numbered returns the version whose number field has as text.
func (h handlers) numbered(r *http.Request, field, text string) (Version, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return Version{}, apierror.Invalid([]decision.Detail{{Field: field, Issue: "is not a version", Expected: "a whole number from 1"}})
	}
	return h.Store.Get(r.Context(), n)
}
