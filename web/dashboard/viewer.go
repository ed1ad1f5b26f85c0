package dashboard

import (
	"errors"
	"net/http"
	"net/url"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/websession"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/http/paging"
)

// viewer is who is signed in.
type viewer struct {
	Session string // id
	Email   string
	Account accounts.Account
	Scopes  []string
	// Operator: of the operator's account, with scope *, as the admin API asks it
	// of keys. An operator sees everything of everybody.
	Operator bool
}

// Has reports whether the viewer holds a scope.
func (v viewer) Has(scope string) bool { return scopes.Covers(v.Scopes, scope) }

// viewer returns who sent r; ok is false when nobody is signed in.
func (s *site) viewer(r *http.Request) (v viewer, ok bool, err error) {
	c, ok, err := s.guard.Session(r)
	if !ok || err != nil {
		return v, false, err
	}
	u, err := s.accounts.User(r.Context(), c.Subject)
	if apierror.Code(err) == decision.NotFound { // removed a moment ago
		return v, false, nil
	}
	if err != nil {
		return v, false, err
	}
	v = viewer{Session: c.ID, Email: u.Email, Scopes: c.Scopes}
	v.Account, err = s.accounts.Get(r.Context(), c.Account)
	v.Operator = v.Account.Operator && v.Has(scopes.Admin)
	return v, true, err
}

// seen lets those through who may see a section; who is not signed in is asked
// to be.
func (s *site) seen(sec section, h handler) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		v, ok, err := s.viewer(r)
		switch {
		case err != nil:
			return err
		case !ok:
			return seeOther(w, r, Root+"/sign-in?"+url.Values{"next": {r.URL.RequestURI()}}.Encode())
		case !sec.visible(v):
			return apierror.Errorf(decision.ScopeMissing, "You may not see this page.")
		}
		leave, err := s.pages.Enter(r.Context(), v.Account.ID)
		if err != nil {
			return &apierror.Error{Code: decision.RateLimited, Message: "Too many pages are being loaded for your account.", RetryAfter: 1, Cause: err}
		}
		defer leave()
		// What is changed is noted under the session, as with the API.
		caller := identity.Caller{Account: v.Account.ID, Key: v.Session, Plan: v.Account.Plan, Scopes: v.Scopes}
		*r = *r.WithContext(identity.With(r.Context(), caller)) // in place: what a form says is known to page, too
		return h(s, w, r, v)
	}
}

// formLimit bounds what a form may send, in bytes, and signedInLimit one of somebody who
// is signed in: a schedule's payload, or a route with its schema.
const (
	formLimit     = 16 << 10
	signedInLimit = 256 << 10
)

// errForged is what people see whose form is not from a page of ours.
var errForged = apierror.Errorf(decision.InvalidRequest, "The page has expired, or your browser blocks cookies. Go back, reload the page and try again.")

// sent is seen for a form, which must be one that we gave to this session.
func (s *site) sent(sec section, h handler) func(http.ResponseWriter, *http.Request) error {
	return s.seen(sec, func(s *site, w http.ResponseWriter, r *http.Request, v viewer) error {
		if err := s.readForm(w, r, v.Session); err != nil {
			return err
		}
		return h(s, w, r, v)
	})
}

// readForm reads the form that r sends, and refuses one that is not ours.
func (s *site) readForm(w http.ResponseWriter, r *http.Request, session string) error {
	limit := int64(formLimit)
	if session != "" {
		limit = signedInLimit
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	if err := r.ParseForm(); err != nil {
		return &apierror.Error{Code: decision.InvalidRequest, Message: "The form cannot be read.", Cause: err}
	}
	if !s.guard.Genuine(r, session, Root, r.PostForm.Get("token")) {
		return errForged
	}
	return nil
}

// token is what forms for a session carry.
func (s *site) token(w http.ResponseWriter, r *http.Request, session string) string {
	return websession.Token(s.guard.FormSecret(w, r), session, Root)
}

// chosen is the account that a page is about: for an operator the one that is
// asked for by name, for anybody else their own.
func (s *site) chosen(r *http.Request, v viewer) (accounts.Account, error) {
	id := r.FormValue("account")
	if id == "" || id == v.Account.ID {
		return v.Account, nil
	}
	if !v.Operator {
		return accounts.Account{}, &apierror.Error{Code: decision.NotFound}
	}
	return s.accounts.Get(r.Context(), id)
}

// choice are the accounts that an operator may choose from: the newest hundred.
// many says that there are more, which are chosen by their ids.
func (s *site) choice(r *http.Request, v viewer) (list []accounts.Account, many bool, err error) {
	if !v.Operator {
		return nil, false, nil
	}
	list, total, err := paging.Rows(s.accounts.Page(r.Context(), paging.Page{Limit: paging.MaxLimit}))
	return list, total > len(list), err
}

// detailsOf are the faults of a form that err names; nil: err is something else.
func detailsOf(err error) []decision.Detail {
	if e, ok := errors.AsType[*apierror.Error](err); ok && e.Code == decision.InvalidRequest {
		return e.Details
	}
	return nil
}
