package dashboard

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/http/webpage"
)

// signInForm is the page on which people sign in.
type signInForm struct {
	Title   string
	Token   string
	Next    string // where to go then
	Email   string // as it was typed before
	Problem string // of the attempt before; empty: none
}

// showSignIn shows the form, or the dashboard to whoever is signed in.
func (s *site) showSignIn(w http.ResponseWriter, r *http.Request) error {
	next := ours(r.URL.Query().Get("next"))
	if _, ok, err := s.viewer(r); ok || err != nil {
		return errors.Join(err, seeOther(w, r, next))
	}
	return s.askToSignIn(w, r, http.StatusOK, signInForm{Next: next})
}

// askToSignIn shows the form.
func (s *site) askToSignIn(w http.ResponseWriter, r *http.Request, status int, f signInForm) error {
	f.Title, f.Token = "Sign in", s.token(w, r, "")
	return webpage.Write(w, pages()["sign_in"], "sign_in", f, webpage.Answer{Status: status, Policy: policy, Referrer: "same-origin"})
}

// signIn is the form. How often it may fail, and that unknown people take as long
// as wrong passwords, are the sessions' rules.
func (s *site) signIn(w http.ResponseWriter, r *http.Request) error {
	if err := s.readForm(w, r, ""); err != nil {
		return err
	}
	f := signInForm{Next: ours(r.PostForm.Get("next")), Email: r.PostForm.Get("email")}
	password := r.PostForm.Get("password")
	if len(f.Email) > 254 || len(password) > sessions.MaxPassword {
		f.Email, f.Problem = "", "The e-mail address or the password is wrong."
		return s.askToSignIn(w, r, http.StatusUnauthorized, f)
	}
	made, err := s.Sessions.SignIn(r.Context(), f.Email, password, identity.ClientAddress(r))
	if err != nil {
		e, ok := errors.AsType[*apierror.Error](err)
		if !ok || e.Code != decision.AuthRequired && e.Code != decision.RateLimited {
			return err
		}
		if e.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
		}
		f.Problem = e.Message
		return s.askToSignIn(w, r, decision.Lookup(e.Code).Status, f)
	}
	s.guard.Enter(w, made)
	return seeOther(w, r, f.Next)
}

// signOut ends the session everywhere.
func (s *site) signOut(w http.ResponseWriter, r *http.Request) error {
	c, ok, err := s.guard.Session(r)
	if err != nil {
		return err
	}
	if ok {
		if err := s.readForm(w, r, c.ID); err != nil {
			return err
		}
		if err := s.Sessions.End(r.Context(), c.ID); err != nil && apierror.Code(err) != decision.NotFound {
			return err
		}
	}
	s.guard.Leave(w)
	return seeOther(w, r, Root+"/sign-in")
}

// ours is where someone goes after signing in: a page of the dashboard, and never
// another site.
func ours(next string) string {
	if next == Root || strings.HasPrefix(next, Root+"/") || strings.HasPrefix(next, Root+"?") {
		return next
	}
	return Root
}

// seeOther leads on with GET. What is at path is for no cache.
func seeOther(w http.ResponseWriter, r *http.Request, path string) error {
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, path, http.StatusSeeOther)
	return nil
}
