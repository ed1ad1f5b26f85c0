package oauth

import (
	"errors"
	"net/http"
	"strconv"

	"sluice.dev/sluice/controlplane/accounts/oauth/page"
	"sluice.dev/sluice/controlplane/accounts/oauth/rules"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/controlplane/accounts/websession"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/identity"
)

// authorize shows the sign-in page, or the consent page to whoever is signed in.
// Consent is asked for every time: another program may pose as the application.
func (h handlers) authorize(w http.ResponseWriter, r *http.Request) error {
	a, bad, err := h.service.readAsk(r.Context(), r.URL.RawQuery)
	if err != nil {
		return err
	}
	if bad != nil {
		return h.back(w, a, [2]string{"error", bad.Code}, [2]string{"error_description", bad.Description})
	}
	c, ok, err := h.guard.Session(r)
	if err != nil {
		return err
	}
	secret := h.guard.FormSecret(w, r)
	if !ok {
		form := page.Form{Token: websession.Token(secret, "", a.raw), Request: a.raw}
		return page.Write(w, http.StatusOK, page.SignIn{Form: form, App: a.app.Name})
	}
	view := page.Consent{Form: page.Form{Token: websession.Token(secret, c.ID, a.raw), Request: a.raw}, App: a.app.Name}
	if view.Email, view.Account, err = h.service.person(r.Context(), c.Subject); err != nil {
		return err
	}
	// A person can give away no more than they have.
	view.Scopes, _ = rules.Within(c.Scopes, a.request.Scopes)
	view.Withheld = without(a.request.Scopes, view.Scopes)
	view.Target, view.Scheme = a.target()
	return page.Write(w, http.StatusOK, view)
}

// without returns those of list that are not in taken.
func without(list, taken []string) (left []string) {
	in := map[string]bool{}
	for _, t := range taken {
		in[t] = true
	}
	for _, s := range list {
		if !in[s] {
			left = append(left, s)
		}
	}
	return left
}

// back sends the browser to the client with params, the state, and who answers
// (RFC 9207).
func (h handlers) back(w http.ResponseWriter, a ask, params ...[2]string) error {
	params = append(params, [2]string{"state", a.request.State}, [2]string{"iss", h.service.config.Issuer})
	return seeOther(w, rules.WithQuery(a.request.Redirect, params...))
}

// seeOther sends the browser on with GET, whatever it came with: a form with a
// password must never be sent again to somebody else (RFC 9700 section 4.12). The
// address is not touched, as http.Redirect would.
func seeOther(w http.ResponseWriter, to string) error {
	w.Header().Set("Location", to)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// sent is a form that came back from one of our pages.
type sent struct {
	ask
	form   rules.Form
	claims sessions.Claims // of who is signed in; zero: nobody
}

// read reads a form. It fails when that is not one that we gave to this browser,
// and, if it is for a person who is signed in, to that person.
func (h handlers) read(w http.ResponseWriter, r *http.Request, signedIn bool) (s sent, err error) {
	if s.form, err = readForm(w, r); err != nil {
		return s, err
	}
	if signedIn {
		if s.claims, _, err = h.guard.Session(r); err != nil {
			return s, err
		}
	}
	request := s.form.Get("request")
	if !h.guard.Genuine(r, s.claims.ID, request, s.form.Get("token")) {
		return s, &rules.Error{Code: rules.InvalidRequest, Description: "The page was too old, or your browser does not keep cookies."}
	}
	a, bad, err := h.service.readAsk(r.Context(), request)
	if err == nil && bad != nil {
		err = bad
	}
	s.ask = a
	return s, err
}

// signIn is the form of the sign-in page. Its limits on attempts, and that unknown
// people take as long as wrong passwords, are those of the sessions.
func (h handlers) signIn(w http.ResponseWriter, r *http.Request) error {
	s, err := h.read(w, r, false)
	if err != nil {
		return err
	}
	email, password := s.form.Get("email"), s.form.Get("password")
	if len(email) > 254 || len(password) > sessions.MaxPassword {
		return h.signInAgain(w, r, s, apierror.Errorf(decision.AuthRequired, "The e-mail address or the password is wrong."))
	}
	made, err := h.service.config.Sessions.SignIn(r.Context(), email, password, identity.ClientAddress(r))
	if err != nil {
		return h.signInAgain(w, r, s, err)
	}
	h.guard.Enter(w, made)
	return seeOther(w, "/oauth/authorize?"+s.raw)
}

// signInAgain shows the page once more, if err is the person's to mend.
func (h handlers) signInAgain(w http.ResponseWriter, r *http.Request, s sent, err error) error {
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok || e.Code != decision.AuthRequired && e.Code != decision.RateLimited {
		return err
	}
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	status := decision.Lookup(e.Code).Status
	form := page.Form{Token: websession.Token(h.guard.FormSecret(w, r), "", s.raw), Request: s.raw}
	return page.Write(w, status, page.SignIn{Form: form, App: s.app.Name, Email: s.form.Get("email"), Problem: e.Message})
}

// consent is the form of the consent page. Anything but a clear yes is a no. What is
// granted is computed anew from the session: the form carries no scopes.
func (h handlers) consent(w http.ResponseWriter, r *http.Request) error {
	s, err := h.read(w, r, true)
	if err != nil {
		return err
	}
	if s.claims.ID == "" { // the session ended meanwhile
		return seeOther(w, "/oauth/authorize?"+s.raw)
	}
	granted, _ := rules.Within(s.claims.Scopes, s.request.Scopes)
	if s.form.Get("answer") != "allow" || len(granted) == 0 {
		return h.back(w, s.ask, [2]string{"error", rules.AccessDenied}, [2]string{"error_description", "The person did not allow it."})
	}
	code, err := h.service.Grant(r.Context(), s.app, s.claims.Subject, s.claims.Account, s.request, granted)
	if err != nil {
		return err
	}
	return h.back(w, s.ask, [2]string{"code", code})
}

// signOut ends the session, so that someone else can sign in.
func (h handlers) signOut(w http.ResponseWriter, r *http.Request) error {
	s, err := h.read(w, r, true)
	if err != nil {
		return err
	}
	if s.claims.ID != "" {
		err = h.service.config.Sessions.End(r.Context(), s.claims.ID)
		if err != nil && apierror.Code(err) != decision.NotFound {
			return err
		}
	}
	h.guard.Leave(w)
	return seeOther(w, "/oauth/authorize?"+s.raw)
}
