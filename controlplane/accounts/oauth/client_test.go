package oauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/oauth2"
)

// claimsOf reads an access token without verifying it.
func claimsOf(t *testing.T, token string) (c Claims) {
	t.Helper()
	if _, _, err := jwt.NewParser().ParseUnverified(token, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// verified reads an access token with the published keys alone.
func (b *bundle) verified(t *testing.T, token string) (c Claims) {
	t.Helper()
	set, err := b.sessions.Keyring.Public(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jwt.NewParser(jwt.WithValidMethods([]string{"ES256"}), jwt.WithIssuer(b.url), jwt.WithAudience(b.url)).
		ParseWithClaims(token, &c, func(got *jwt.Token) (any, error) {
			for _, k := range set.Keys {
				if k.ID == got.Header["kid"] {
					return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), []byte("\x04"+decoded(t, k.X)+decoded(t, k.Y)))
				}
			}
			return nil, fmt.Errorf("no key %v", got.Header["kid"])
		})
	if err != nil || parsed.Header["typ"] != "at+jwt" {
		t.Fatalf("%v %v", err, parsed.Header)
	}
	return c
}

// The whole life of a grant with a library that many programs use.
func TestARealClientFromConsentToTheEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, app := range []CreatedApp{b.secret, b.public} {
		t.Run(app.Name, func(t *testing.T) {
			c, verifier := b.config(app, app.RedirectURIs[0], "streams:read", "streams:write"), oauth2.GenerateVerifier()
			q := b.browser(t).allow(c.AuthCodeURL("state-1", oauth2.S256ChallengeOption(verifier)))
			if q.Get("state") != "state-1" || q.Get("iss") != b.url || q.Get("error") != "" {
				t.Fatal(q)
			}
			first, err := c.Exchange(t.Context(), q.Get("code"), oauth2.VerifierOption(verifier))
			if err != nil {
				t.Fatal(err)
			}
			if first.TokenType != "Bearer" || first.ExpiresIn != 3600 || first.Extra("scope") != "streams:read streams:write" {
				t.Fatalf("%+v", first)
			}
			claims := b.verified(t, first.AccessToken)
			if claims.Subject != b.user.ID || claims.Account != b.account.ID || claims.Client != app.ID || claims.Scope != "streams:read streams:write" ||
				!slices.Equal(claims.Scopes, []string{"streams:read", "streams:write"}) || claims.ID == "" ||
				claims.ExpiresAt.Unix()-claims.IssuedAt.Unix() != 3600 {
				t.Fatalf("%+v", claims)
			}
			second, err := refreshed(t.Context(), c, first.RefreshToken)
			if err != nil || second.RefreshToken == first.RefreshToken || !b.active(t, app, first.AccessToken) {
				t.Fatal(second, err)
			}
			_, err = refreshed(t.Context(), c, first.RefreshToken) // reuse
			wantCode(t, err, "invalid_grant")
			_, err = refreshed(t.Context(), c, second.RefreshToken) // its family is gone
			wantCode(t, err, "invalid_grant")
			for _, ended := range []string{first.AccessToken, second.AccessToken} {
				if b.active(t, app, ended) || !b.toldToEdges(t, ended) {
					t.Error("an access token outlived its family")
				}
			}
		})
	}
}

func TestClientsAuthenticateInEitherWay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, style := range []oauth2.AuthStyle{oauth2.AuthStyleInHeader, oauth2.AuthStyleInParams, oauth2.AuthStyleAutoDetect} {
		c := b.config(b.secret, callback)
		c.Endpoint.AuthStyle = style
		if _, err := c.Exchange(t.Context(), b.grant(t, b.secret, "")); err != nil {
			t.Errorf("style %d: %v", style, err)
		}
	}
}

func TestWhoTheTokenEndpointRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := b.addApp(t, AppSpec{Name: "Other", RedirectURIs: []string{callback}})
	basic := func(id, secret string) []string {
		return []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))}
	}
	cases := map[string]struct {
		form   string
		header []string
		status int
		code   string
	}{
		"no client":                    {"grant_type=refresh_token", nil, 401, "invalid_client"},
		"an unknown client":            {"client_id=app_0000000000000", nil, 401, "invalid_client"},
		"a client that is no id":       {"client_id=%27%3B--", nil, 401, "invalid_client"},
		"no secret":                    {"client_id=" + b.secret.ID, nil, 401, "invalid_client"},
		"a wrong secret":               {"client_id=" + b.secret.ID + "&client_secret=x", nil, 401, "invalid_client"},
		"another's secret":             {"client_id=" + b.secret.ID + "&client_secret=" + other.Secret, nil, 401, "invalid_client"},
		"a secret of a public one":     {"client_id=" + b.public.ID + "&client_secret=x", nil, 401, "invalid_client"},
		"a wrong secret, header":       {"", basic(b.secret.ID, "x"), 401, "invalid_client"},
		"a bearer token":               {"", []string{"Authorization", "Bearer x"}, 401, "invalid_client"},
		"two ways at once":             {"client_secret=" + b.secret.Secret, basic(b.secret.ID, b.secret.Secret), 400, "invalid_request"},
		"two clients":                  {"client_id=" + other.ID, basic(b.secret.ID, b.secret.Secret), 400, "invalid_request"},
		"a parameter twice":            {"client_id=a&client_id=a", nil, 400, "invalid_request"},
		"no text":                      {"client_id=%ff", nil, 400, "invalid_request"},
		"no form":                      {"client_id=%zz", nil, 400, "invalid_request"},
		"too long":                     {"client_id=" + strings.Repeat("a", 33<<10), nil, 413, "invalid_request"},
		"no grant type":                {"", basic(b.secret.ID, b.secret.Secret), 400, "invalid_request"},
		"a password grant":             {"grant_type=password", basic(b.secret.ID, b.secret.Secret), 400, "unsupported_grant_type"},
		"no code":                      {"grant_type=authorization_code", basic(b.secret.ID, b.secret.Secret), 400, "invalid_request"},
		"an unknown code":              {"grant_type=authorization_code&code=x", basic(b.secret.ID, b.secret.Secret), 400, "invalid_grant"},
		"no refresh token":             {"grant_type=refresh_token", basic(b.secret.ID, b.secret.Secret), 400, "invalid_request"},
		"an unknown refresh token":     {"grant_type=refresh_token&refresh_token=x", basic(b.secret.ID, b.secret.Secret), 400, "invalid_grant"},
		"JSON":                         {`{"grant_type":"refresh_token"}`, []string{"Content-Type", "application/json"}, 400, "invalid_request"},
		"client in the query, ignored": {"grant_type=refresh_token", nil, 401, "invalid_client"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/oauth/token?client_id="+b.public.ID, strings.NewReader(c.form))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			for i := 0; i < len(c.header); i += 2 {
				r.Header.Set(c.header[i], c.header[i+1])
			}
			got := b.browser(t).do(r)
			wantStatus(t, got, c.status)
			if body := got.object(t); body["error"] != c.code || body["error_description"] == "" || strings.Contains(got.body, b.secret.Secret) {
				t.Error(got.body)
			}
			if challenged := got.Header.Get("WWW-Authenticate") != ""; challenged != (c.status == 401 && r.Header.Get("Authorization") != "") {
				t.Error("WWW-Authenticate: ", got.Header)
			}
			if got.Header.Get("Cache-Control") != "no-store" {
				t.Error(got.Header)
			}
		})
	}
}

func TestRevocationAndIntrospectionOverHTTP(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made, br := b.tokens(t), b.browser(t)
	call := func(app CreatedApp, path, token string) answer {
		form := url.Values{"client_id": {app.ID}, "token": {token}, "token_type_hint": {"access_token"}}
		if app.Secret != "" {
			form.Set("client_secret", app.Secret)
		}
		return br.post(path, form)
	}
	other := b.addApp(t, AppSpec{Name: "Other", RedirectURIs: []string{callback}})
	inactive := func(what string, a answer) {
		t.Helper()
		if a.StatusCode != 200 || strings.TrimSpace(a.body) != `{"active":false}` {
			t.Errorf("%s: %d %s", what, a.StatusCode, a.body)
		}
	}
	claims := b.verified(t, made.Access)
	got := call(b.secret, "/oauth/introspect", made.Access).object(t)
	if got["active"] != true || got["scope"] != "streams:*" || got["client_id"] != b.secret.ID || got["sub"] != b.user.ID || got["account"] != b.account.ID ||
		got["token_type"] != "Bearer" || got["iss"] != b.url || got["aud"] != b.url || got["jti"] != claims.ID || got["exp"] != float64(claims.ExpiresAt.Unix()) {
		t.Error(got)
	}
	if got := call(b.secret, "/oauth/introspect", made.Refresh).object(t); got["active"] != true || got["token_type"] != nil || got["jti"] != nil {
		t.Error(got)
	}
	inactive("another's", call(other, "/oauth/introspect", made.Access))
	inactive("unknown", call(b.secret, "/oauth/introspect", "x"))
	wantStatus(t, call(b.public, "/oauth/introspect", made.Access), 401)
	wantStatus(t, call(b.secret, "/oauth/introspect", ""), 400)
	wantStatus(t, call(other, "/oauth/revoke", made.Access), 200)
	if !b.active(t, b.secret, made.Access) {
		t.Fatal("another application revoked it")
	}
	wantStatus(t, call(b.secret, "/oauth/revoke", "unknown"), 200)
	wantStatus(t, call(b.secret, "/oauth/revoke", made.Access), 200)
	inactive("revoked", call(b.secret, "/oauth/introspect", made.Access))
	if !b.toldToEdges(t, made.Access) || !b.active(t, b.secret, made.Refresh) {
		t.Error("an access token that is revoked ends at edges, and alone")
	}
	next, err := b.service.Refresh(t.Context(), b.secret.App, made.Refresh, "")
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, call(b.secret, "/oauth/revoke", next.Refresh), 200)
	inactive("its family", call(b.secret, "/oauth/introspect", next.Access))
	if !b.toldToEdges(t, next.Access) {
		t.Error("the access token of a refresh token that is revoked works at edges")
	}
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	b := setup(t)
	br := b.browser(t)
	got := br.get("/.well-known/oauth-authorization-server").object(t)
	for field, want := range map[string]string{
		"issuer": b.url, "authorization_endpoint": b.url + "/oauth/authorize", "token_endpoint": b.url + "/oauth/token",
		"revocation_endpoint": b.url + "/oauth/revoke", "introspection_endpoint": b.url + "/oauth/introspect",
		"jwks_uri": b.url + "/.well-known/jwks.json", "code_challenge_methods_supported": "[S256]", "response_types_supported": "[code]",
		"grant_types_supported": "[authorization_code refresh_token]", "authorization_response_iss_parameter_supported": "true",
		"token_endpoint_auth_methods_supported":         "[client_secret_basic client_secret_post none]",
		"introspection_endpoint_auth_methods_supported": "[client_secret_basic client_secret_post]",
	} {
		if fmt.Sprint(got[field]) != want {
			t.Errorf("%s is %v, want %s", field, got[field], want)
		}
	}
	if list := fmt.Sprint(got["scopes_supported"]); !strings.Contains(list, "streams:read streams:write") || strings.Contains(list, "*") {
		t.Error(list)
	}
	got = br.get("/.well-known/oauth-protected-resource").object(t)
	if got["resource"] != b.url || fmt.Sprint(got["authorization_servers"]) != "["+b.url+"]" || fmt.Sprint(got["bearer_methods_supported"]) != "[header]" {
		t.Error(got)
	}
}
