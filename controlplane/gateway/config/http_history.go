package config

import (
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// versionsPage is how many versions a page has at most, and by default.
const versionsPage = 100

// versions is a page of the history.
type versions struct {
	Data []Entry `json:"data"`
	More bool    `json:"has_more"`
}

// history answers GET config/versions: ?limit=, and ?before= a version for the
// next page.
func (h handlers) history(r *http.Request, _ httpapi.None) (out versions, err error) {
	q := r.URL.Query()
	limit, before := int64(versionsPage), int64(0)
	var details []decision.Detail
	for name, to := range map[string]*int64{"limit": &limit, "before": &before} {
		if !q.Has(name) {
			continue
		}
		n, err := strconv.ParseInt(q.Get(name), 10, 64)
		if err != nil || n < 1 || name == "limit" && n > versionsPage {
			details = append(details, decision.Detail{Field: name, Issue: "is not valid", Expected: "a whole number from 1 (limit: to 100)"})
		}
		*to = n
	}
	if err := apierror.Invalid(details); err != nil {
		return out, err
	}
	list, more, err := h.Store.History(r.Context(), before, int(limit))
	return versions{append([]Entry{}, list...), more}, err
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
