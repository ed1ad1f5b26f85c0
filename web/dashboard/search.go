package dashboard

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/webhooks"
)

// searchPage is what a search has found.
type searchPage struct {
	Query  string
	Kinds  []foundKind
	Anyone bool // identifiers of all accounts are found
}

// foundKind are things of one kind.
type foundKind struct {
	Name string
	Hits []hit
}

// hit is a thing that was found.
type hit struct{ Name, ID, Link string }

// mostRoutes is how many routes a search shows.
const mostRoutes = 10

// shortestQuery is from how many characters on names are looked for.
const shortestQuery = 2

// showSearch finds things by an identifier or by a part of a name, and leads to what it has
// found where that is one thing. An identifier that an operator asks for is found in every
// account, a name in the one that is looked at. What it costs does not grow with the platform:
// each kind is looked up by its key, and among a bounded number of the account's newest.
func (s *site) showSearch(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.chosen(r, v)
	if err != nil {
		return err
	}
	p := searchPage{Query: strings.TrimSpace(cut(r.URL.Query().Get("q"))), Anyone: v.Operator}
	if len(p.Query) >= shortestQuery && !strings.ContainsRune(p.Query, 0) {
		if err := s.search(r.Context(), look{viewer: v, Account: a}, &p); err != nil {
			return err
		}
	}
	if len(p.Kinds) == 1 && len(p.Kinds[0].Hits) == 1 {
		return seeOther(w, r, p.Kinds[0].Hits[0].Link)
	}
	return s.show(w, r, v, "search", "Search", "", p)
}

// search looks for everything that may be seen.
func (s *site) search(ctx context.Context, l look, p *searchPage) error {
	whose := l.viewer.Account.ID
	if l.Operator {
		whose = ""
	}
	for _, one := range []func(context.Context, look, *searchPage, string) error{s.searchRequests, s.searchAccounts, s.searchWebhooks, s.searchSchedules, s.searchRoutes} {
		if err := one(ctx, l, p, whose); err != nil {
			return err
		}
	}
	return nil
}

// add notes what was found.
func (p *searchPage) add(name string, hits []hit) {
	if len(hits) > 0 {
		p.Kinds = append(p.Kinds, foundKind{name, hits})
	}
}

// linkTo leads to a thing of an account.
func (l look) linkTo(path, account string) string {
	if account == l.viewer.Account.ID {
		return Root + path
	}
	return Root + path + "?" + url.Values{"account": {account}}.Encode()
}

// may reports whether whoever looks may see the section at a path.
func (s *site) may(l look, path string) bool {
	for _, sec := range s.sections() {
		if sec.Path == path {
			return sec.visible(l.viewer)
		}
	}
	return false
}

// searchRequests finds a request by its id.
func (s *site) searchRequests(ctx context.Context, l look, p *searchPage, whose string) error {
	if !s.may(l, "/requests") {
		return nil
	}
	one, err := s.Requests.Get(ctx, whose, p.Query)
	if apierror.Code(err) == decision.NotFound {
		return nil
	}
	p.add("Requests", []hit{{one.Method + " " + one.Path, one.ID, l.linkTo("/requests/"+url.PathEscape(one.ID), l.Account.ID)}})
	return err
}

// searchAccounts finds accounts, keys and people. People have their changes in the audit log.
func (s *site) searchAccounts(ctx context.Context, l look, p *searchPage, whose string) error {
	accounts, keys, people, err := s.accounts.Search(ctx, whose, l.Account.ID, p.Query)
	if err != nil {
		return err
	}
	var hits []hit
	for _, one := range accounts {
		hits = append(hits, hit{one.Name, one.ID, l.linkTo("/usage", one.ID)})
	}
	p.add("Accounts", hits)
	hits = nil
	for _, one := range keys {
		hits = append(hits, hit{one.Name, one.ID, l.linkTo("/keys/"+one.ID, one.Account)})
	}
	p.add("Keys", hits)
	hits = nil
	for _, one := range people {
		if s.may(l, "/audit") {
			q := url.Values{"actor": {one.Name}, "of": {one.Account}}
			if one.Account != l.viewer.Account.ID {
				q.Set("account", one.Account)
			}
			hits = append(hits, hit{one.Name, one.ID, Root + "/audit?" + q.Encode()})
		}
	}
	p.add("People", hits)
	return nil
}

// searchWebhooks finds endpoints.
func (s *site) searchWebhooks(ctx context.Context, l look, p *searchPage, whose string) error {
	if !s.may(l, "/webhooks") {
		return nil
	}
	list, err := s.Webhooks.Search(ctx, whose, l.Account.ID, p.Query)
	p.add("Webhooks", hitsOf(list, func(one webhooks.Found) hit { return hit{one.URL, one.ID, l.linkTo("/webhooks/"+one.ID, one.Account)} }))
	return err
}

// searchSchedules finds schedules.
func (s *site) searchSchedules(ctx context.Context, l look, p *searchPage, whose string) error {
	if !s.may(l, "/schedules") {
		return nil
	}
	list, err := s.Schedules.Search(ctx, whose, l.Account.ID, p.Query)
	p.add("Schedules", hitsOf(list, func(one schedules.Found) hit {
		return hit{one.Name, one.ID, l.linkTo("/schedules/"+one.ID, one.Account)}
	}))
	return err
}

// searchRoutes finds routes of the newest configuration.
func (s *site) searchRoutes(ctx context.Context, l look, p *searchPage, _ string) error {
	if !s.may(l, "/routes") {
		return nil
	}
	now, err := s.Documents.Store.Latest(ctx)
	if err != nil {
		return err
	}
	var hits []hit
	for _, route := range now.Document.Routes {
		if len(hits) < mostRoutes && matches(route, p.Query) {
			q := url.Values{"q": {route.Name}}
			if l.Account.ID != l.viewer.Account.ID {
				q.Set("account", l.Account.ID)
			}
			hits = append(hits, hit{route.Name, route.Path, Root + "/routes?" + q.Encode()})
		}
	}
	p.add("Routes", hits)
	return nil
}

// hitsOf makes hits of what was found.
func hitsOf[T any](list []T, of func(T) hit) (hits []hit) {
	for _, one := range list {
		hits = append(hits, of(one))
	}
	return hits
}
