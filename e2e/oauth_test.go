package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/oauth2"
)

// oauthApp is what `sluice app create` shows.
type oauthApp struct {
	ID     string `json:"client_id"`
	Secret string `json:"client_secret"`
}

// newApp registers an application by the command line.
func (s *stack) newApp(t testing.TB, redirect string, more ...string) oauthApp {
	t.Helper()
	args := append([]string{"app", "create", "--name", "Studio " + t.Name()[:4], "--redirect-uri", redirect, "--scope", "streams:read",
		"--scope", "streams:write", "--output", "json"}, more...)
	status, out, errs := sluice(t, s.cli(), args...)
	if status != 0 {
		t.Fatal(status, errs)
	}
	return intoText[oauthApp](t, out)
}

// library is a real client library, told of the stack by its metadata alone.
func (s *stack) library(t testing.TB, app oauthApp, redirect string) *oauth2.Config {
	t.Helper()
	r := call(t, http.MethodGet, s.url("/.well-known/oauth-authorization-server"), "", nil)
	wantStatus(t, r, 200)
	m := into[struct {
		Issuer    string   `json:"issuer"`
		Authorize string   `json:"authorization_endpoint"`
		Token     string   `json:"token_endpoint"`
		Methods   []string `json:"code_challenge_methods_supported"`
	}](t, r)
	if m.Issuer != s.dev["SLUICE_AUTH_URL"] || len(m.Methods) != 1 || m.Methods[0] != "S256" {
		t.Fatal(r.body)
	}
	return &oauth2.Config{ClientID: app.ID, ClientSecret: app.Secret, RedirectURL: redirect, Scopes: []string{"streams:read"},
		Endpoint: oauth2.Endpoint{AuthURL: m.Authorize, TokenURL: m.Token}}
}

// person is a browser with cookies that follows no redirect by itself.
type person struct {
	t    testing.TB
	http *http.Client
}

func newPerson(t testing.TB) person {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return person{t, &http.Client{Jar: jar, CheckRedirect: client.CheckRedirect, Timeout: client.Timeout}}
}

func (p person) open(address string) response {
	p.t.Helper()
	return p.read(p.http.Get(address))
}

var carried = regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)">`)

// submit sends the first form of a page, with more fields, to a path.
func (p person) submit(page response, path string, more ...string) response {
	p.t.Helper()
	form := url.Values{}
	for _, m := range carried.FindAllStringSubmatch(page.body, 2) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	for i := 0; i < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	to := page.Request.URL.ResolveReference(&url.URL{Path: path})
	return p.read(p.http.PostForm(to.String(), form))
}

func (p person) read(res *http.Response, err error) response {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return response{Response: res, body: string(body)}
}

// allows goes from an application's link to its callback, whose query it returns.
func (p person) allows(s *stack, link string) url.Values {
	p.t.Helper()
	return p.allowsAs(s, link, s.dev["SLUICE_USER_EMAIL"], s.dev["SLUICE_USER_PASSWORD"])
}

// allowsAs is allows for somebody else.
func (p person) allowsAs(s *stack, link, email, password string) url.Values {
	p.t.Helper()
	page := p.open(link)
	wantStatus(p.t, page, 200)
	in := p.submit(page, "/oauth/sign-in", "email", email, "password", password)
	wantStatus(p.t, in, http.StatusSeeOther)
	page = p.open(s.url(in.Header.Get("Location")))
	wantStatus(p.t, page, 200)
	done := p.submit(page, "/oauth/consent", "answer", "allow")
	wantStatus(p.t, done, http.StatusSeeOther)
	to, err := done.Location()
	if err != nil {
		p.t.Fatal(err)
	}
	return to.Query()
}

// refusal is the code of an error of the token endpoint.
func refusal(err error) string {
	if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return e.ErrorCode
	}
	return "no refusal"
}

// Through the edge: consent with PKCE, tokens, refresh, reuse, which ends all.
func TestOAuthWithARealClient(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	const redirect = "http://127.0.0.1:49152/callback" // of another port than the registered one
	for name, more := range map[string][]string{"confidential": nil, "public": {"--public"}} {
		t.Run(name, func(t *testing.T) {
			app := s.newApp(t, "http://127.0.0.1/callback", more...)
			if (app.Secret == "") != (name == "public") {
				t.Fatal("secret")
			}
			c, verifier, ctx := s.library(t, app, redirect), oauth2.GenerateVerifier(), context.Background()
			q := newPerson(t).allows(s, c.AuthCodeURL("xyz", oauth2.S256ChallengeOption(verifier)))
			if q.Get("state") != "xyz" || q.Get("iss") != s.dev["SLUICE_AUTH_URL"] {
				t.Fatal(q)
			}
			_, err := c.Exchange(ctx, q.Get("code"), oauth2.VerifierOption(oauth2.GenerateVerifier()))
			if refusal(err) != "invalid_grant" {
				t.Fatal("another's verifier:", err)
			}
			first, err := c.Exchange(ctx, q.Get("code"), oauth2.VerifierOption(verifier))
			if err != nil || first.TokenType != "Bearer" || first.ExpiresIn != 3600 || first.Extra("scope") != "streams:read" {
				t.Fatal(first, err)
			}
			refresh := func(token string) (*oauth2.Token, error) {
				return c.TokenSource(ctx, &oauth2.Token{RefreshToken: token}).Token()
			}
			second, err := refresh(first.RefreshToken)
			if err != nil || second.RefreshToken == first.RefreshToken {
				t.Fatal(err)
			}
			if _, err := refresh(first.RefreshToken); refusal(err) != "invalid_grant" {
				t.Fatal("reuse:", err)
			}
			if _, err := refresh(second.RefreshToken); refusal(err) != "invalid_grant" {
				t.Fatal("the family lives on:", err)
			}
		})
	}
}

func TestOAuthIntrospectionAndTheEndOfAnApp(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	const redirect = "https://client.example/callback"
	app := s.newApp(t, redirect)
	c := s.library(t, app, redirect)
	verifier := oauth2.GenerateVerifier()
	q := newPerson(t).allows(s, c.AuthCodeURL("xyz", oauth2.S256ChallengeOption(verifier)))
	token, err := c.Exchange(context.Background(), q.Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	introspect := func() (status int, body string) {
		r := newPerson(t).read(client.PostForm(s.url("/oauth/introspect"),
			url.Values{"client_id": {app.ID}, "client_secret": {app.Secret}, "token": {token.AccessToken}}))
		return r.StatusCode, r.body
	}
	if status, body := introspect(); status != 200 || !strings.Contains(body, `"active":true`) {
		t.Fatal(status, body)
	}
	// It stands for an application: it makes no API keys.
	r := call(t, http.MethodPost, s.url("/v1/auth/keys"), token.AccessToken, map[string]any{"name": "x", "scopes": []string{"streams:read"}})
	if r.StatusCode != 401 && r.StatusCode != 403 {
		t.Fatal(r.StatusCode, r.body)
	}
	status, out, errs := sluice(t, s.cli(), "app", "revoke", app.ID)
	if status != 0 || !strings.Contains(out, app.ID) {
		t.Fatal(status, out, errs)
	}
	if status, body := introspect(); status != 401 || !strings.Contains(body, "invalid_client") {
		t.Fatal(status, body)
	}
	status, out, errs = sluice(t, s.cli(), "app", "list", "--output", "json")
	if status != 0 || !strings.Contains(out, app.ID) || strings.Contains(out, app.Secret) {
		t.Fatal(status, errs)
	}
}

// An access token opens what its scope covers at every edge, and is refused there
// soon after its grant has ended.
func TestOAuthTokensAtTheEdge(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	const redirect = "https://client.example/callback"
	app := s.newApp(t, redirect, "--scope", "users:read")
	c := s.library(t, app, redirect)
	c.Scopes = []string{"users:read"}
	verifier := oauth2.GenerateVerifier()
	q := newPerson(t).allows(s, c.AuthCodeURL("xyz", oauth2.S256ChallengeOption(verifier)))
	token, err := c.Exchange(context.Background(), q.Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	users := func(status int) func() error {
		return func() error {
			r, err := try(http.MethodGet, s.url("/v1/users"), token.AccessToken, nil)
			return unless(err, r, status)
		}
	}
	eventually(t, "the token opens its scope", users(200))
	wantError(t, call(t, http.MethodGet, s.url("/v1/billing/invoices"), token.AccessToken, nil), 403, "AUTH_002")
	wantError(t, call(t, http.MethodGet, s.url("/v1/users"), token.AccessToken+"A", nil), 401, "invalid_token")
	r := newPerson(t).read(client.PostForm(s.url("/oauth/revoke"), url.Values{"client_id": {app.ID}, "client_secret": {app.Secret}, "token": {token.RefreshToken}}))
	wantStatus(t, r, 200)
	eventually(t, "the token is refused", users(401))
}

func TestOAuthRefusalsHaveTheirStandardForm(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	r := newPerson(t).read(client.PostForm(s.url("/oauth/token"), url.Values{"grant_type": {"refresh_token"}, "client_id": {"app_0000000000000"}}))
	wantStatus(t, r, 401)
	wantHeaders(t, r)
	var body struct{ Error string }
	if err := json.Unmarshal([]byte(r.body), &body); err != nil || body.Error != "invalid_client" {
		t.Fatal(r.body)
	}
	page := newPerson(t).open(s.url("/oauth/authorize?client_id=app_0000000000000&redirect_uri=https://evil.example/"))
	if page.StatusCode/100 != 4 || page.Header.Get("Location") != "" || !strings.Contains(page.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
		t.Fatal(page.StatusCode, page.Header)
	}
	wantStatus(t, call(t, http.MethodGet, s.url("/.well-known/oauth-protected-resource"), "", nil), 200)
}
