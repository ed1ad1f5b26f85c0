package dashboard

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/controlplane/accounts/scoperegistry"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/paging"
)

// keysPage are the keys of an account.
type keysPage struct {
	Now    time.Time
	Keys   []apikeys.Key
	Pager  pager
	Groups []scopeGroup // of scopes that a new key may have
	Lives  []int        // days that it may live
	Preset string       // which scopes are ticked to begin with: "", none, or read or all
	Made   *apikeys.Created
	Curl   string // a request with Made
	Form   keyForm
	// Problem is why Form was refused.
	Problem []decision.Detail
}

// keyForm is what the form of a new key says.
type keyForm struct {
	Name   string
	Days   int
	Scopes []string
}

// scopeGroup are the scopes of one resource.
type scopeGroup struct {
	Name   string
	Scopes []scopeChoice
}

// scopeChoice is a scope that may be ticked, and is.
type scopeChoice struct {
	Name, Action string
	Ticked       bool
}

// scopeGroups are scopes by what they are of, in the order of their names.
func scopeGroups(list []string, ticked func(scope string) bool) (groups []scopeGroup) {
	slices.Sort(list)
	for _, scope := range list {
		of, action, found := strings.Cut(scope, ":")
		if !found {
			action = scope
		}
		if len(groups) == 0 || groups[len(groups)-1].Name != of {
			groups = append(groups, scopeGroup{Name: of})
		}
		g := &groups[len(groups)-1]
		g.Scopes = append(g.Scopes, scopeChoice{scope, action, ticked(scope)})
	}
	return groups
}

// defaultDays is how long a new key is proposed to live.
const defaultDays = 90

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
	p.Now, p.Lives, p.Form.Days = s.Now(), lives, cmp.Or(p.Form.Days, defaultDays)
	page := pageOf(r)
	list, total, err := paging.Rows(s.keys.Page(r.Context(), a.ID, page))
	if err != nil {
		return err
	}
	p.Keys, p.Pager = list, pagerOf(r, "/keys", page, len(list), total)
	_, offered, err := scoperegistry.LoadOffered(r.Context(), s.DB)
	if err != nil {
		return err
	}
	p.Preset = r.URL.Query().Get("preset")
	p.Groups = scopeGroups(slices.DeleteFunc(offered.Plain(), func(scope string) bool { return !v.Has(scope) }), func(scope string) bool {
		return slices.Contains(p.Form.Scopes, scope) || p.Preset == "all" || p.Preset == "read" && strings.HasSuffix(scope, ":read")
	})
	if p.Made != nil {
		if p.Curl, err = s.firstRequest(r, *p.Made); err != nil {
			return err
		}
	}
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
	end, form := s.Now().AddDate(0, 0, days).UTC(), keyForm{r.PostForm.Get("name"), days, r.PostForm["scopes"]}
	spec := apikeys.Spec{Account: a.ID, Name: form.Name, Scopes: form.Scopes, ExpiresAt: &end, Creator: v.Scopes, Most: apikeys.MaxKeys}
	made, err := s.keys.Create(r.Context(), spec)
	if details := detailsOf(err); details != nil {
		return s.keysWith(w, r, v, a, keysPage{Form: form, Problem: details})
	}
	if err != nil {
		return err
	}
	return s.keysWith(w, r, v, a, keysPage{Made: &made})
}

// firstRequest is a command that shows that a new key works: a request to a route that it
// may call, which needs nothing else.
func (s *site) firstRequest(r *http.Request, made apikeys.Created) (string, error) {
	now, err := s.Documents.Store.Latest(r.Context())
	if err != nil {
		return "", err
	}
	path := "/"
	for _, route := range now.Document.Routes {
		plain := !strings.ContainsAny(route.Path, "*{") && route.ListenerName() == "gateway" && (len(route.Methods) == 0 || slices.Contains(route.Methods, http.MethodGet))
		if plain && route.Scope != "" && scopes.Covers(made.Scopes, route.Scope) && slices.Contains(route.Auth, "key") {
			path = route.Path
			break
		}
	}
	return "curl -i " + cmp.Or(s.Requests.DocsBase, "$SLUICE_GATEWAY_URL") + path + " -H 'Authorization: Bearer " + made.Text + "'", nil
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
	if len(q) == 0 {
		return Root + path
	}
	return Root + path + "?" + q.Encode()
}
