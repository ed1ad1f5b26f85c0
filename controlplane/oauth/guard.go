package oauth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/controlplane/sessions"
	"sluice.dev/sluice/filters/decision"
)

// cookiePath keeps our cookies away from every other route and product.
const cookiePath = "/oauth"

// guard keeps the browser's cookies: who is signed in, and a secret that forms
// are bound to.
type guard struct {
	secure   bool // served over https
	sessions *sessions.Service
}

// newGuard makes the guard of a server; only an http issuer, as on a local stack,
// gets cookies that are not Secure.
func newGuard(c Config) guard {
	return guard{strings.HasPrefix(c.Issuer, "https://"), c.Sessions}
}

// name of a cookie. The prefix makes browsers refuse one that was set over http.
func (g guard) name(s string) string {
	if g.secure {
		return "__Secure-sluice-" + s
	}
	return "sluice-" + s
}

// set gives the browser a cookie. SameSite is lax, not strict: people come to the
// authorization endpoint by a link on the site of the client.
func (g guard) set(w http.ResponseWriter, name, value string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{Name: g.name(name), Value: value, Path: cookiePath, MaxAge: int(life / time.Second),
		HttpOnly: true, Secure: g.secure, SameSite: http.SameSiteLaxMode})
}

// clear makes the browser forget who is signed in.
func (g guard) clear(w http.ResponseWriter) { g.set(w, "session", "", -time.Second) }

// session returns who is signed in; ok is false when nobody is.
func (g guard) session(r *http.Request) (c sessions.Claims, ok bool, err error) {
	cookie, err := r.Cookie(g.name("session"))
	if err != nil {
		return c, false, nil
	}
	c, err = g.sessions.Verify(r.Context(), cookie.Value)
	switch controlplane.ErrorCode(err) {
	case "":
		return c, true, nil
	case decision.InvalidToken, decision.TokenExpired:
		return c, false, nil
	}
	return c, false, err
}

// formSecret returns the browser's secret, giving it one if need be.
func (g guard) formSecret(w http.ResponseWriter, r *http.Request) string {
	if c, err := r.Cookie(g.name("form")); err == nil && len(c.Value) == len(rand.Text()) {
		return c.Value
	}
	secret := rand.Text()
	g.set(w, "form", secret, 24*time.Hour)
	return secret
}

// token binds a form to the browser, the session ("" for none) and the request.
func token(secret, session, request string) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(session + "\x00" + request))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// genuine reports whether a form that was sent is one that we gave to this
// browser for this session and request, and was sent from our own page.
func (g guard) genuine(r *http.Request, session, request, got string) bool {
	// Two checks, as each has a gap: old browsers send neither Origin nor
	// Sec-Fetch-Site, and a sibling domain may plant a cookie.
	c, err := r.Cookie(g.name("form"))
	if err != nil || c.Value == "" || http.NewCrossOriginProtection().Check(r) != nil {
		return false
	}
	return hmac.Equal([]byte(token(c.Value, session, request)), []byte(got))
}
