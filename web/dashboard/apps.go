package dashboard

import (
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/oauth"
	"sluice.dev/sluice/controlplane/accounts/scoperegistry"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/paging"
)

// appsPage are the applications of an account.
type appsPage struct {
	Now   time.Time
	Apps  []oauth.App
	Pager pager
}

// showApps shows the applications that an account has registered.
func (s *site) showApps(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.operated(r, v)
	if err != nil {
		return err
	}
	page := pageOf(r)
	list, total, err := paging.Rows(s.Apps.Page(r.Context(), a.ID, page))
	if err != nil {
		return err
	}
	return s.showOf(w, r, v, a, "apps", "OAuth apps", "/apps", appsPage{s.Now(), list, pagerOf(r, "/apps", page, len(list), total)})
}

// appForm is the form of a new application.
func (s *site) appForm(r *http.Request, v viewer) (a accounts.Account, f *form, err error) {
	if a, err = s.operated(r, v); err != nil {
		return a, nil, err
	}
	_, offered, err := scoperegistry.LoadOffered(r.Context(), s.DB)
	if err != nil {
		return a, nil, err
	}
	scopes := offered.Plain()
	slices.Sort(scopes)
	return a, &form{Action: "/apps/new", Back: "/apps", Name: "All apps", Submit: "Register app", Fields: []field{
		{Name: "name", Label: "Name", Hint: "People see it when they are asked for their consent.", Required: true, Max: 100},
		{Name: "redirect_uris", Label: "Redirect addresses", Kind: "area", Hint: "A line each: https://, http:// on this machine, or a private scheme with a dot.", Required: true, Max: 8000},
		{Name: "public", Label: "It cannot keep a secret, like an app on a phone or in a browser", Kind: "check"},
		{Name: "scopes", Label: "Scopes that it may ask for", Kind: "checks", Choices: choices(scopes...)},
	}}, nil
}

// newApp shows that form.
func (s *site) newApp(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, f, err := s.appForm(r, v)
	if err != nil {
		return err
	}
	return s.ask(w, r, v, a, "/apps", "Register an app", f)
}

// createApp is that form. The secret is shown this once.
func (s *site) createApp(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, f, err := s.appForm(r, v)
	if err != nil {
		return err
	}
	f.fill(r)
	made, err := s.Apps.CreateApp(r.Context(), oauth.AppSpec{Account: a.ID, Name: f.text("name"), Public: f.text("public") != "", RedirectURIs: f.parts("redirect_uris"), Scopes: f.at("scopes").Chosen})
	return s.asked(w, r, v, a, "/apps", "Register an app", f, err, func() error {
		if made.Secret == "" {
			return seeOther(w, r, linkOf("/apps/"+made.ID, v, a, "done", "saved"))
		}
		return s.made(w, r, v, a, "/apps", "App registered", madePage{
			Label: "The client secret of " + made.Name, Text: made.Secret, Intro: "The application shows it to get tokens.",
			Facts: []choice{{made.ID, "Client ID"}}, Next: "/apps/" + made.ID, Name: "Show the app",
		})
	})
}

// app is the application that r is about, which belongs to the account that was chosen.
func (s *site) app(r *http.Request, v viewer) (a accounts.Account, one oauth.App, err error) {
	if a, err = s.operated(r, v); err != nil {
		return a, one, err
	}
	if one, err = s.Apps.App(r.Context(), chi.URLParam(r, "id")); err == nil && one.Account != a.ID {
		err = &apierror.Error{Code: decision.NotFound}
	}
	return a, one, err
}

// showApp shows one application.
func (s *site) showApp(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, one, err := s.app(r, v)
	if err != nil {
		return err
	}
	return s.showOf(w, r, v, a, "app", one.Name, "/apps", one)
}

// revokeApp ends an application, once that is confirmed.
func (s *site) revokeApp(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, one, err := s.app(r, v)
	if err != nil {
		return err
	}
	at := "/apps/" + one.ID
	return s.confirm(w, r, v, a, danger{
		At: at + "/revoke", Here: "/apps", Back: at, Place: one.Name, Title: "Revoke " + one.Name, Do: "Revoke app", Name: one.Name,
		Intro: "Everything that people granted it ends, at every edge. This cannot be undone.",
		Done:  "/apps", Said: "app-revoked",
	}, func(*form) error { return s.Apps.RevokeApp(r.Context(), one.ID) })
}
