package dashboard

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/controlplane/accounts/scoperegistry"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// keysPage are the keys of an account.
type keysPage struct {
	Now    time.Time
	Keys   []apikeys.Key
	Pager  pager
	Scopes []string // that a new key may have
	Lives  []int    // days that it may live
	Made   *apikeys.Created
	// What was asked for and refused, and why.
	Name    string
	Problem []decision.Detail
}

// lives are the days for which a new key may be made here.
var lives = []int{7, 30, 90, 365}

// showKeys shows the keys of an account.
func (s *site) showKeys(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.chosen(r, v)
	if err != nil {
		return err
	}
	return s.keysWith(w, r, v, a, keysPage{})
}

// keysWith shows them with what a form has done.
func (s *site) keysWith(w http.ResponseWriter, r *http.Request, v viewer, a accounts.Account, p keysPage) error {
	p.Now, p.Lives = s.Now(), lives
	page := pageOf(r)
	list, total, err := s.keys.List(r.Context(), a.ID, page)
	if err != nil {
		return err
	}
	p.Keys, p.Pager = list, pagerOf(r, "/keys", page, len(list), total)
	_, offered, err := scoperegistry.LoadOffered(r.Context(), s.DB)
	if err != nil {
		return err
	}
	p.Scopes = slices.DeleteFunc(offered.Plain(), func(scope string) bool { return !v.Has(scope) })
	slices.Sort(p.Scopes)
	return s.showOf(w, r, v, a, "keys", "Keys", "/keys", p)
}

// makeKey is the form that makes a key, whose text the answer shows this once.
func (s *site) makeKey(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.chosen(r, v)
	if err != nil {
		return err
	}
	days, err := strconv.Atoi(r.PostForm.Get("days"))
	if err != nil || !slices.Contains(lives, days) {
		return apierror.Errorf(decision.InvalidRequest, "The form does not say when the key expires.")
	}
	end := s.Now().AddDate(0, 0, days).UTC()
	spec := apikeys.Spec{Account: a.ID, Name: r.PostForm.Get("name"), Scopes: r.PostForm["scopes"], ExpiresAt: &end, Creator: v.Scopes, Most: apikeys.MaxKeys}
	made, err := s.keys.Create(r.Context(), spec)
	if details := detailsOf(err); details != nil {
		return s.keysWith(w, r, v, a, keysPage{Name: spec.Name, Problem: details})
	}
	if err != nil {
		return err
	}
	return s.keysWith(w, r, v, a, keysPage{Made: &made})
}

// revokeKey is the form that ends a key.
func (s *site) revokeKey(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.chosen(r, v)
	if err != nil {
		return err
	}
	if err := s.keys.Revoke(r.Context(), a.ID, chi.URLParam(r, "id"), v.Scopes); err != nil {
		return err
	}
	return seeOther(w, r, linkOf("/keys", v, a, "done", "revoked"))
}

// linkOf leads to a page about an account, with more parameters.
func linkOf(path string, v viewer, a accounts.Account, pairs ...string) string {
	q := url.Values{}
	if a.ID != v.Account.ID {
		q.Set("account", a.ID)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return Root + path + "?" + q.Encode()
}
