package config

import (
	"context"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// historyPage is how many versions a page has at most, and by default.
const historyPage = 100

// history answers GET config/versions: ?limit=, and ?before= a version for the
// next page.
func (a Admin) history(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	limit, before := int64(historyPage), int64(0)
	var details []decision.Detail
	for name, to := range map[string]*int64{"limit": &limit, "before": &before} {
		if !q.Has(name) {
			continue
		}
		n, err := strconv.ParseInt(q.Get(name), 10, 64)
		if err != nil || n < 1 || name == "limit" && n > historyPage {
			details = append(details, decision.Detail{Field: name, Issue: "is not valid", Expected: "a whole number from 1 (limit: to 100)"})
		}
		*to = n
	}
	if err := apierror.Invalid(details); err != nil {
		return err
	}
	entries, more, err := a.Store.History(r.Context(), before, int(limit))
	if err != nil {
		return err
	}
	httpapi.JSON(w, http.StatusOK, struct {
		Data []Entry `json:"data"`
		More bool    `json:"has_more"`
	}{append([]Entry{}, entries...), more})
	return nil
}

// Described is a version with what it changed.
type Described struct {
	Version
	Against int64    `json:"against"` // the version that changes are counted from; 0: none
	Changes []Change `json:"changes"`
}

// version answers GET config/versions/{version}.
func (a Admin) version(w http.ResponseWriter, r *http.Request) error {
	v, err := a.asked(r)
	if err != nil {
		return err
	}
	var other Version
	if against := r.URL.Query().Get("against"); against == "" {
		other, err = a.Store.Before(r.Context(), v.Number)
	} else {
		other, err = a.numbered(r, "against", against)
	}
	if err != nil {
		return err
	}
	w.Header().Set("ETag", etag(v.Number))
	httpapi.JSON(w, http.StatusOK, Described{v, other.Number, differences(other.Document, v.Document)})
	return nil
}

// asked returns the version that the path names.
func (a Admin) asked(r *http.Request) (Version, error) {
	return a.numbered(r, "version", chi.URLParam(r, "version"))
}

// numbered returns the version whose number field has as text.
func (a Admin) numbered(r *http.Request, field, text string) (Version, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return Version{}, apierror.Invalid([]decision.Detail{{Field: field, Issue: "is not a version", Expected: "a whole number from 1"}})
	}
	return a.Store.Get(r.Context(), n)
}

// rollback answers POST config/versions/{version}/rollback. The document is
// checked like any other: what was right then may lack a plan that accounts now
// have.
func (a Admin) rollback(w http.ResponseWriter, r *http.Request) error {
	ifMatch, err := parseIfMatch(r.Header.Get("If-Match"))
	if err != nil {
		return err
	}
	old, err := a.asked(r)
	if err != nil {
		return err
	}
	return a.publish(w, r, rollbackNote(old), backTo(old, ifMatch))
}

// Rollback makes the document of a version the newest one again, as author. It
// is checked like any other, and fails with precondition_failed when ifMatch is
// neither Any nor the number of the newest version.
func (a Admin) Rollback(ctx context.Context, author string, number, ifMatch int64) (PutResult, error) {
	old, err := a.Store.Get(ctx, number)
	if err != nil {
		return PutResult{}, err
	}
	return a.store(ctx, author, rollbackNote(old), backTo(old, ifMatch))
}

// rollbackNote is the note of a version that is old again.
func rollbackNote(old Version) string {
	return "rollback to version " + strconv.FormatInt(old.Number, 10)
}

// backTo is the edit that puts old in the place of the newest version.
func backTo(old Version, ifMatch int64) func(Version) (Document, error) {
	return func(now Version) (Document, error) {
		if ifMatch != Any && ifMatch != now.Number {
			return Document{}, stale(now.Number)
		}
		return old.Document, nil
	}
}
