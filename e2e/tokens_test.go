package e2e

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// issuer is another platform with a key of each algorithm.
type issuer struct {
	*httptest.Server
	mu   sync.Mutex
	keys map[string]any // by kid, which is the algorithm's name
	set  []map[string]string
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{keys: map[string]any{}}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i.keys = map[string]any{"ES256": ec, "RS256": rs, "PS256": rs, "EdDSA": ed}
	point, err := ec.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	n, e := b64(rs.N.Bytes()), b64(big.NewInt(int64(rs.E)).Bytes())
	i.set = []map[string]string{
		{"kty": "EC", "crv": "P-256", "kid": "ES256", "x": b64(point[1:33]), "y": b64(point[33:])},
		{"kty": "RSA", "alg": "RS256", "kid": "RS256", "n": n, "e": e},
		{"kty": "RSA", "alg": "PS256", "kid": "PS256", "n": n, "e": e},
		{"kty": "OKP", "crv": "Ed25519", "kid": "EdDSA", "x": b64(public)},
	}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": i.set})
	}))
	t.Cleanup(i.Close)
	return i
}

// claims are good ones, for the scope that the document's map calls viewer.
func (i *issuer) claims() jwt.MapClaims {
	return jwt.MapClaims{"iss": i.URL, "aud": "sluice", "exp": time.Now().Add(time.Hour).Unix(), "jti": "t1", "sub": "u1", "roles": "viewer"}
}

func with(c jwt.MapClaims, name string, v any) jwt.MapClaims {
	c = maps.Clone(c)
	c[name] = v
	return c
}

func (i *issuer) token(t testing.TB, alg string, c jwt.MapClaims, header ...string) string {
	t.Helper()
	tok := jwt.NewWithClaims(jwt.GetSigningMethod(alg), c)
	tok.Header["kid"] = alg
	for n := 0; n+1 < len(header); n += 2 {
		tok.Header[header[n]] = header[n+1]
	}
	text, err := tok.SignedString(i.keys[alg])
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// blanks returns a token that is good but for n blanks behind its claims.
func (i *issuer) blanks(t testing.TB, n int) string {
	t.Helper()
	claims, err := json.Marshal(i.claims())
	if err != nil {
		t.Fatal(err)
	}
	raw := base64.RawURLEncoding.EncodeToString
	signed := raw([]byte(`{"alg":"ES256","kid":"ES256"}`)) + "." + raw(append(claims, strings.Repeat(" ", n)...))
	sum, err := jwt.SigningMethodES256.Sign(signed, i.keys["ES256"])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + raw(sum)
}

// account makes an account without a key.
func (s *stack) account(t testing.TB, plan string) (id string) {
	t.Helper()
	r := call(t, http.MethodPost, s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/accounts", s.dev["SLUICE_ADMIN_KEY"], map[string]string{"name": "tenant", "plan": plan})
	wantStatus(t, r, http.StatusCreated)
	return into[struct{ ID string }](t, r).ID
}

// keyedAccount makes an account and a key of it with every scope, which the edge knows.
func (s *stack) keyedAccount(t testing.TB, plan string) (id, key string) {
	t.Helper()
	id = s.account(t, plan)
	key, _ = s.adminKey(t, id, "*")
	s.known(t, key)
	return id, key
}

// configure puts the default document in force, with text before its classes, at every
// edge.
func (s *stack) configure(t testing.TB, text string, changes ...string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "deploy", "sluice.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	doc := strings.NewReplacer(append(changes, "\nclasses:\n", "\n"+text+"\nclasses:\n")...).Replace(string(b))
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, out, errs := sluice(t, s.cli(), "apply", "-f", file, "--wait"); status != 0 {
		t.Fatal(status, out, errs)
	}
}

// lists asks for the streams from behind a proxy that saw address, on a new
// connection: an old one may still be under an older configuration.
func (s *stack) lists(credential, address string) (response, error) {
	return try(http.MethodGet, s.url("/v1/streams"), credential, nil, "X-Forwarded-For", address, "Connection", "close")
}

func (s *stack) wantLists(t testing.TB, what, credential, address string, status int, code string) {
	t.Helper()
	var last response
	eventually(t, what, func() error {
		r, err := s.lists(credential, address)
		last = r
		if err = unless(err, r, status); err != nil {
			client.CloseIdleConnections() // one from before a change of the listener keeps what held then
		}
		return err
	})
	if code != "" {
		wantError(t, last, status, code)
	}
}

func TestTokensOfAnotherIssuer(t *testing.T) {
	t.Parallel()
	s, is := lentStack(t), newIssuer(t)
	account := s.account(t, "local")
	s.configure(t, fmt.Sprintf(`issuers:
  - issuer: %q
    audience: sluice
    jwks_uri: %q
    scope_claim: roles
    scope_map: {viewer: ["streams:read"], editor: ["streams:*"]}
    account: %s
`, is.URL, is.URL+"/keys", account))
	good := is.claims()
	for _, alg := range []string{"ES256", "RS256", "PS256", "EdDSA"} {
		s.wantLists(t, alg+" is accepted", is.token(t, alg, good), "", 200, "")
	}
	made := call(t, http.MethodPost, s.url("/v1/streams"), is.token(t, "ES256", with(good, "roles", []string{"editor"})), map[string]string{"title": "by token"})
	wantStatus(t, made, http.StatusCreated)
	admin := s.dev["SLUICE_API_KEY"] // of another account
	wantError(t, call(t, http.MethodGet, s.url("/v1/streams/"+into[stream](t, made).ID), admin, nil), 404, "not_found")

	forged := strings.Split(is.token(t, "ES256", good), ".")
	raw := base64.RawURLEncoding.EncodeToString
	stranger := newIssuer(t)
	stranger.URL = is.URL
	hmac, err := jwt.NewWithClaims(jwt.SigningMethodHS256, good).SignedString([]byte(is.set[1]["n"]))
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		text   string
		status int
		code   string
	}{
		"ended":                      {is.token(t, "ES256", with(good, "exp", 1)), 401, "AUTH_001"},
		"ended and forged":           {stranger.token(t, "ES256", with(good, "exp", 1)), 401, "invalid_token"},
		"without the scope":          {is.token(t, "ES256", with(good, "roles", "guest *")), 403, "AUTH_002"},
		"by a stranger":              {stranger.token(t, "ES256", good), 401, "invalid_token"},
		"for another audience":       {is.token(t, "ES256", with(good, "aud", "other")), 401, "invalid_token"},
		"of an issuer not known":     {is.token(t, "ES256", with(good, "iss", "https://evil.example")), 401, "invalid_token"},
		"in our name":                {is.token(t, "ES256", with(with(good, "iss", s.dev["SLUICE_GATEWAY_URL"]), "aud", s.dev["SLUICE_GATEWAY_URL"]), "typ", "at+jwt"), 401, "invalid_token"},
		"not yet valid":              {is.token(t, "ES256", with(good, "nbf", time.Now().Add(time.Hour).Unix())), 401, "invalid_token"},
		"with a fraction":            {is.token(t, "ES256", with(good, "exp", 4e9+0.5)), 401, "invalid_token"},
		"of a key not known":         {is.token(t, "ES256", good, "kid", "other"), 401, "invalid_token"},
		"with another key's id":      {is.token(t, "ES256", good, "kid", "RS256"), 401, "invalid_token"},
		"with crit":                  {is.token(t, "ES256", good, "crit", "exp"), 401, "invalid_token"},
		"with an address of keys":    {is.token(t, "ES256", good, "jku", stranger.Server.URL), 401, "invalid_token"},
		"with PKCS#1 for PSS":        {is.token(t, "RS256", good, "kid", "PS256", "alg", "PS256"), 401, "invalid_token"},
		"with a shared secret":       {hmac, 401, "invalid_token"},
		"without a signature":        {forged[0] + "." + forged[1] + ".", 401, "invalid_token"},
		"with a signature of zeros":  {forged[0] + "." + forged[1] + "." + raw(make([]byte, 64)), 401, "invalid_token"},
		"with alg none":              {raw([]byte(`{"alg":"none","kid":"ES256"}`)) + "." + forged[1] + ".", 401, "invalid_token"},
		"with a fourth part":         {strings.Join(forged, ".") + ".AAAA", 401, "invalid_token"},
		"with padding":               {strings.Join(forged, ".") + "=", 401, "invalid_token"},
		"with 8 KB of blanks":        {is.blanks(t, 5300), 401, "invalid_token"},
		"with one blank":             {is.blanks(t, 1), 401, "invalid_token"},
		"where only keys are taken":  {"", 401, "invalid_api_key"},
		"of a claim that is changed": {forged[0] + "." + raw([]byte(`{"iss":"`+is.URL+`","aud":"sluice","exp":9999999999,"roles":"editor"}`)) + "." + forged[2], 401, "invalid_token"},
	} {
		path := "/v1/streams"
		if c.text == "" {
			path, c.text = "/v1/auth/validate", is.token(t, "ES256", good)
		}
		t.Run(what, func(t *testing.T) { wantError(t, call(t, http.MethodGet, s.url(path), c.text, nil), c.status, c.code) })
	}
	s.wantLists(t, "the token that has none", is.blanks(t, 0), "", 200, "")
	s.configure(t, "")
	s.wantLists(t, "a token without blanks", is.blanks(t, 0), "", 401, "invalid_token")
	s.wantLists(t, "the issuer is trusted no more", is.token(t, "ES256", good), "", 401, "invalid_token")
}

// An address that has guessed at tokens as often as it may is heard no more, for
// that matter: no other token from there is taken apart. Who was in stays in,
// keys work, and other addresses notice nothing. A /64 of IPv6 is one address.
func TestGuessesAtTokens(t *testing.T) {
	t.Parallel()
	const guesses = 30
	s := own(t, map[string]string{"SLUICE_EDGE_CONCURRENCY": "1"})
	s.configure(t, "trusted_proxies: 1", "anonymous_per_minute: 6000", fmt.Sprintf("anonymous_per_minute: %d", guesses))
	// Two addresses that were not heard of before have as much left: before the listener
	// takes them from the proxy, all are one.
	n := 0
	eventually(t, "the limit is in force, by address", func() error {
		client.CloseIdleConnections() // one from before a change of the listener keeps what held then
		for range 2 {
			n++
			r, err := s.lists("", fmt.Sprintf("198.51.%d.%d", 100+n/250, n%250+1))
			if err != nil {
				return err
			}
			limit, left := r.Header.Get("X-RateLimit-Limit"), r.Header.Get("X-RateLimit-Remaining")
			if left != strconv.Itoa(guesses-1) {
				return fmt.Errorf("%s of %s left", left, limit)
			}
		}
		return nil
	})
	signIn := func() string {
		r := call(t, http.MethodPost, s.url("/v1/auth/sessions"), "", map[string]string{"email": s.dev["SLUICE_USER_EMAIL"], "password": s.dev["SLUICE_USER_PASSWORD"]},
			"X-Forwarded-For", "192.0.2.98")
		wantStatus(t, r, http.StatusCreated)
		return into[struct{ Token string }](t, r).Token
	}
	proven, other := signIn(), signIn()
	want := func(what, credential, address string, status int) {
		t.Helper()
		r, err := s.lists(credential, address)
		if err != nil || r.StatusCode != status {
			t.Errorf("%s: %v %d %s, want %d", what, err, r.StatusCode, r.body, status)
		}
	}
	want("a session", proven, "192.0.2.1", 200)
	for i := range guesses {
		want("a guess", fmt.Sprintf("%s.%04d", other, i), "192.0.2.1", 401)
		want("a guess from a network", fmt.Sprintf("%s.%04d", other, i), fmt.Sprintf("2001:db8::%x", i), 401)
	}
	want("one guess more", other+".x", "192.0.2.1", 429)
	want("one more, mapped into IPv6", other+".x", "::ffff:192.0.2.1", 429)
	want("one more from the network", other+".x", "2001:db8::ffff:1", 429)
	want("a session that is new here", other, "192.0.2.1", 429)
	want("the session that was in", proven, "192.0.2.1", 200)
	want("a key", s.dev["SLUICE_API_KEY"], "192.0.2.1", 200)
	want("the session from elsewhere", other, "192.0.2.2", 200)
	want("a guess from another network", other+".x", "2001:db8:0:1::1", 401)
}

func TestSessionsAtTheEdge(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	signIn := func() string {
		r := call(t, http.MethodPost, s.url("/v1/auth/sessions"), "", map[string]string{"email": s.dev["SLUICE_USER_EMAIL"], "password": s.dev["SLUICE_USER_PASSWORD"]})
		wantStatus(t, r, http.StatusCreated)
		return into[struct{ Token string }](t, r).Token
	}
	one, two := signIn(), signIn()
	s.wantLists(t, "a session is accepted", one, "", 200, "")
	s.wantLists(t, "another is", two, "", 200, "")
	wantStatus(t, call(t, http.MethodDelete, s.url("/v1/auth/sessions/current"), one, nil), http.StatusNoContent)
	s.wantLists(t, "a session that was ended", one, "", 401, "invalid_token")
	s.wantLists(t, "the other one", two, "", 200, "")
	changed := two[:len(two)-4] + "AAAA"
	s.wantLists(t, "a session that was changed", changed, "", 401, "invalid_token")
}

func TestAddressesOfAnAccount(t *testing.T) {
	t.Parallel()
	s := lentStack(t)
	id, key := s.keyedAccount(t, "local")
	_, free := s.keyedAccount(t, "local")
	s.configure(t, "trusted_proxies: 1")
	allow := func(addresses ...string) {
		r := call(t, http.MethodPut, s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/accounts/"+id+"/allowlist", s.dev["SLUICE_ADMIN_KEY"],
			map[string]any{"addresses": append([]string{}, addresses...)})
		wantStatus(t, r, 200)
	}
	s.wantLists(t, "no list", key, "198.51.100.7", 200, "")
	allow("192.0.2.0/24", "2001:db8::/32")
	s.wantLists(t, "a listed address", key, "192.0.2.200", 200, "")
	s.wantLists(t, "another address", key, "198.51.100.7", 403, "AUTH_003")
	for address, status := range map[string]int{
		"::ffff:192.0.2.1": 200, "2001:db8:1::1": 200, "192.0.3.1": 403, "2001:db9::1": 403,
		"198.51.100.7, 192.0.2.5": 200, "192.0.2.5, 198.51.100.7": 403, // what the proxy saw counts, not what the client says
	} {
		s.wantLists(t, address, key, address, status, "")
	}
	s.wantLists(t, "an account without a list", free, "198.51.100.7", 200, "")
	s.wantAuditedAddress(t, "192.0.2.5, 198.51.100.7", "198.51.100.7")
	allow()
	s.wantLists(t, "the list is gone", key, "198.51.100.7", 200, "")
}

// wantAuditedAddress signs in from behind a proxy that wrote forwarded, with a
// forged header of ours, and wants the audit log to name the address want.
func (s *stack) wantAuditedAddress(t testing.TB, forwarded, want string) {
	t.Helper()
	r, err := try(http.MethodPost, s.url("/v1/auth/sessions"), "", map[string]string{"email": s.dev["SLUICE_USER_EMAIL"], "password": s.dev["SLUICE_USER_PASSWORD"]},
		"X-Forwarded-For", forwarded, "X-Sluice-Client-Address", "203.0.113.6", "X-Envoy-External-Address", "203.0.113.6")
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, r, http.StatusCreated)
	r = call(t, http.MethodGet, s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/audit?limit=1", s.dev["SLUICE_ADMIN_KEY"], nil)
	wantStatus(t, r, http.StatusOK)
	log := into[struct {
		Data []struct{ Action, Address string }
	}](t, r).Data
	if len(log) != 1 || log[0].Action != "session.create" || log[0].Address != want {
		t.Errorf("the audit log says %v, want %s", log, want)
	}
}

func TestProductsOfAPlan(t *testing.T) {
	t.Parallel()
	s := lentStack(t)
	_, key := s.keyedAccount(t, "free")
	s.wantLists(t, "a plan of everything", key, "", 200, "")
	s.configure(t, "", "    limits: {default: {per_minute: 60}}\n", "    limits: {default: {per_minute: 60}}\n    products: [api]\n")
	s.wantLists(t, "a plan without the product", key, "", 403, "BILLING_003")
	wantStatus(t, call(t, http.MethodGet, s.url("/v1/auth/validate"), key, nil), 200)
	wantStatus(t, call(t, http.MethodGet, s.url("/v1/streams"), s.dev["SLUICE_API_KEY"], nil), 200)
}

func TestUnpaidAccount(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	id, key := s.keyedAccount(t, "local")
	invoice := func(status string) {
		r := call(t, http.MethodPost, s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/accounts/"+id+"/invoices", s.dev["SLUICE_ADMIN_KEY"], map[string]any{
			"invoices": []any{map[string]any{"number": "2026-01", "status": status, "currency": "EUR", "amount": 100, "period_start": "2026-01-01",
				"period_end": "2026-01-31", "issued_at": "2026-02-01T00:00:00Z", "due_at": "2026-02-15T00:00:00Z"}}})
		wantStatus(t, r, 200)
	}
	s.wantLists(t, "nothing is owed", key, "", 200, "")
	invoice("open")
	s.wantLists(t, "an invoice is overdue", key, "", 402, "BILLING_001")
	invoice("paid")
	s.wantLists(t, "it is paid", key, "", 200, "")
}
