// Package websession keeps people signed in to our pages by cookies that no script
// can read, and checks that forms come from those pages.
package websession

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"time"

	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// Guard keeps the browser's cookies: who is signed in, and a secret that forms
// are bound to.
type Guard struct {
	// Secure says that the pages are served over https: browsers then send the
	// cookies over nothing else.
	Secure bool
	// Path keeps the cookies away from every other route and product. With / and
	// Secure they are the host's alone: another of the same domain cannot set them.
	Path string
	// Name begins the cookies' names, which differ from those of other pages of
	// the same host: browsers do not tell its ports apart.
	Name     string
	SameSite http.SameSite
	Sessions *sessions.Service
}

// name of a cookie. The prefix makes browsers refuse one that was set over http or,
// for those of a whole host, by another host of its domain.
func (g Guard) name(s string) string {
	switch {
	case g.Secure && g.Path == "/":
		return "__Host-" + g.Name + s
	case g.Secure:
		return "__Secure-" + g.Name + s
	}
	return g.Name + s
}

// set gives the browser a cookie.
func (g Guard) set(w http.ResponseWriter, name, value string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{Name: g.name(name), Value: value, Path: g.Path, MaxAge: int(life / time.Second),
		HttpOnly: true, Secure: g.Secure, SameSite: g.SameSite})
}

// Enter makes the browser remember a session.
func (g Guard) Enter(w http.ResponseWriter, s sessions.Session) {
	g.set(w, "session", s.Token, time.Duration(s.ExpiresIn)*time.Second)
}

// Leave makes the browser forget who is signed in.
func (g Guard) Leave(w http.ResponseWriter) { g.set(w, "session", "", -time.Second) }

// Session returns who is signed in; ok is false when nobody is.
func (g Guard) Session(r *http.Request) (c sessions.Claims, ok bool, err error) {
	cookie, err := r.Cookie(g.name("session"))
	if err != nil {
		return c, false, nil
	}
	c, err = g.Sessions.Verify(r.Context(), cookie.Value)
	switch apierror.Code(err) {
	case "":
		return c, true, nil
	case decision.InvalidToken, decision.TokenExpired:
		return c, false, nil
	}
	return c, false, err
}

// FormSecret returns the browser's secret, giving it one if need be.
func (g Guard) FormSecret(w http.ResponseWriter, r *http.Request) string {
	if c, err := r.Cookie(g.name("form")); err == nil && len(c.Value) == len(rand.Text()) {
		return c.Value
	}
	secret := rand.Text()
	g.set(w, "form", secret, 24*time.Hour)
	return secret
}

// Token binds a form to the browser by its secret, to the session ("" for none)
// and to what the form is about.
func Token(secret, session, about string) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(session + "\x00" + about))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// Genuine reports whether a form that was sent is one that we gave to this
// browser for this session and purpose, and was sent from our own page.
func (g Guard) Genuine(r *http.Request, session, about, got string) bool {
	// Two checks, as each has a gap: old browsers send neither Origin nor
	// Sec-Fetch-Site, and a sibling domain may plant a cookie.
	c, err := r.Cookie(g.name("form"))
	if err != nil || c.Value == "" || http.NewCrossOriginProtection().Check(r) != nil {
		return false
	}
	return hmac.Equal([]byte(Token(c.Value, session, about)), []byte(got))
}
