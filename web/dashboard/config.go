package dashboard

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/identity"
)

// routesPage are the routes of the newest configuration.
type routesPage struct {
	Version  int64
	Query    string
	Routes   []config.Route // of those that match the query, as many as a page has
	Pager    pager
	All      int
	Products []config.Product
}

// maxSearch bounds a search, in bytes.
const maxSearch = 100

// showRoutes shows the routes and products, or those that ?q= finds.
func (s *site) showRoutes(w http.ResponseWriter, r *http.Request, v viewer) error {
	now, err := s.Documents.Store.Latest(r.Context())
	if err != nil {
		return err
	}
	p := routesPage{Version: now.Number, Query: cut(r.URL.Query().Get("q")), All: len(now.Document.Routes), Products: now.Document.Products}
	for _, route := range now.Document.Routes {
		if matches(route, p.Query) {
			p.Routes = append(p.Routes, route)
		}
	}
	page, found := pageOf(r), len(p.Routes)
	p.Routes = p.Routes[min(page.Offset, found):min(page.Offset+page.Limit, found)]
	p.Pager = pagerOf(r, "/routes", page, len(p.Routes), found)
	return s.show(w, r, v, "routes", "Routes", "/routes", p)
}

// matches reports whether a route has what is searched for in its name, path,
// product or scope.
func matches(r config.Route, query string) bool {
	return slices.ContainsFunc(append([]string{r.Name, r.Path, r.Scope, r.Product}, r.Products()...), func(text string) bool {
		return strings.Contains(strings.ToLower(text), strings.ToLower(query))
	})
}

// cut shortens what somebody searches for.
func cut(text string) string {
	if len(text) > maxSearch {
		text = text[:maxSearch]
	}
	return strings.ToValidUTF8(text, "")
}

// historyPage is a part of the history of the configuration.
type historyPage struct {
	Entries []config.Entry
	Newest  int64
	Older   int64 // the page before this number follows; 0: there is none
	Paged   bool  // the list does not begin with the newest
}

// perPage is how many rows a list shows at once.
const perPage = 50

// showHistory shows the versions, newest first.
func (s *site) showHistory(w http.ResponseWriter, r *http.Request, v viewer) error {
	before, err := strconv.ParseInt("0"+r.URL.Query().Get("before"), 10, 64)
	if err != nil {
		return s.notFound(w, r)
	}
	now, err := s.Documents.Store.Latest(r.Context())
	if err != nil && apierror.Code(err) != decision.NotFound {
		return err
	}
	p := historyPage{Newest: now.Number, Paged: before > 0}
	var more bool
	if p.Entries, more, err = s.Documents.Store.History(r.Context(), before, perPage); err != nil {
		return err
	}
	if more {
		p.Older = p.Entries[len(p.Entries)-1].Number
	}
	return s.show(w, r, v, "history", "Configuration", "/config", p)
}

// versionPage is one version of the configuration.
type versionPage struct {
	Version config.Version
	Before  int64           // the version that it replaced; 0: none
	Changes []config.Change // against that
	Newest  int64
	Back    []config.Change // what a rollback to it would change; nothing for the newest
}

// showVersion shows what a version has changed, and what going back to it would.
func (s *site) showVersion(w http.ResponseWriter, r *http.Request, v viewer) error {
	number, err := strconv.ParseInt(chi.URLParam(r, "version"), 10, 64)
	if err != nil {
		return s.notFound(w, r)
	}
	var p versionPage
	if p.Version, err = s.Documents.Store.Get(r.Context(), number); err != nil {
		return err
	}
	before, err := s.Documents.Store.Before(r.Context(), number)
	if err != nil {
		return err
	}
	now, err := s.Documents.Store.Latest(r.Context())
	if err != nil {
		return err
	}
	p.Before, p.Changes = before.Number, config.Diff(before.Document, p.Version.Document)
	p.Newest, p.Back = now.Number, config.Diff(now.Document, p.Version.Document)
	return s.show(w, r, v, "version", "Version "+strconv.FormatInt(number, 10), "/config", p)
}

// rollBack is the form that puts an old version in force again. It names the
// version that was the newest when its page was made.
func (s *site) rollBack(w http.ResponseWriter, r *http.Request, v viewer) error {
	number, err := strconv.ParseInt(chi.URLParam(r, "version"), 10, 64)
	if err != nil {
		return s.notFound(w, r)
	}
	newest, err := strconv.ParseInt(r.PostForm.Get("newest"), 10, 64)
	if err != nil || newest < 1 {
		return apierror.Errorf(decision.InvalidRequest, "The form does not say which version it replaces.")
	}
	caller, _ := identity.From(r.Context())
	made, err := s.Documents.Rollback(r.Context(), caller.Key, number, newest)
	if err != nil {
		return err
	}
	a, err := s.chosen(r, v)
	if err != nil {
		return err
	}
	return seeOther(w, r, linkOf("/config/"+strconv.FormatInt(made.Version, 10), v, a, "done", "rolled-back"))
}
