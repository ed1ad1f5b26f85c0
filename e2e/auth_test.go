package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// swapLast changes the last character of a key, which is part of its checksum.
func swapLast(key string) string {
	if strings.HasSuffix(key, "0") {
		return key[:len(key)-1] + "1"
	}
	return key[:len(key)-1] + "0"
}

func TestWhoIsRefused(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	good := s.dev["SLUICE_API_KEY"]
	reader, _ := s.newKey(t, "streams:read")
	revoked, id := s.newKey(t, "streams:read")
	wantStatus(t, call(t, http.MethodDelete, s.url("/v1/auth/keys/"+id), s.dev["SLUICE_SESSION_TOKEN"], nil), http.StatusNoContent)
	s.refused(t, revoked)
	cases := map[string]struct {
		method, path, key string
		status            int
		code              string
		says              string // what is wrong and what to do; "none": no details
		headers           []string
	}{
		"no key":                       {"GET", "/v1/streams", "", 401, "authentication_required", "Authorization is missing: Authorization: Bearer <API key or token>", nil},
		"Basic":                        {"GET", "/v1/streams", "", 401, "invalid_api_key", "Authorization has the scheme Basic, which is not read here: Authorization: Bearer <API key>", []string{"Authorization", "Basic YTpi"}},
		"a malformed key":              {"GET", "/v1/streams", "hello", 401, "invalid_api_key", "key does not begin with slk_: ", nil},
		"half a key":                   {"GET", "/v1/streams", good[:40], 401, "invalid_api_key", "key is too short: its end is missing: ", nil},
		"a wrong checksum":             {"GET", "/v1/streams", swapLast(good), 401, "invalid_api_key", "key is mistyped: its checksum does not fit: the whole text of a key: slk_ and 52 more characters", nil},
		"an unknown key":               {"GET", "/v1/streams", unknownKey, 401, "invalid_api_key", "none", nil},
		"a revoked key":                {"GET", "/v1/streams", revoked, 401, "invalid_api_key", "none", nil},
		"a key without the scope":      {"POST", "/v1/streams", reader, 403, "AUTH_002", "scope is not granted to this credential: streams:write", nil},
		"an unmapped route":            {"GET", "/v1/nothing/here", good, 403, "ROUTE_NOT_MAPPED", "", nil},
		"an unmapped route, no key":    {"GET", "/v1/nothing/here", "", 403, "ROUTE_NOT_MAPPED", "", nil},
		"an unmapped method":           {"PUT", "/v1/streams", good, 403, "ROUTE_NOT_MAPPED", "method PUT is not mapped here", nil},
		"a path outside of the API":    {"GET", "/nothing", good, 404, "not_found", "", nil},
		"an absent stream":             {"GET", "/v1/streams/strm_absent", good, 404, "not_found", "", nil},
		"a session where a key is due": {"GET", "/v1/auth/validate", s.dev["SLUICE_SESSION_TOKEN"], 401, "invalid_api_key", "", nil},
		"a key where a session is due": {"POST", "/v1/auth/keys", good, 401, "invalid_token", "", nil},
		"no session":                   {"GET", "/v1/auth/keys", "", 401, "authentication_required", "Authorization is missing: Authorization: Bearer <session token>", nil},
		"a key for operators":          {"GET", s.dev["SLUICE_ADMIN_URL"] + "/admin/v1/accounts", good[:40], 401, "invalid_api_key", "key is too short: its end is missing: ", nil},
		"no key for operators":         {"GET", s.dev["SLUICE_ADMIN_URL"] + "/admin/v1/accounts", "", 401, "authentication_required", "Authorization is missing: Authorization: Bearer <API key>", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var body any
			if c.method == http.MethodPost {
				body = map[string]any{}
			}
			to := c.path
			if strings.HasPrefix(to, "/") {
				to = s.url(to)
			}
			r := call(t, c.method, to, c.key, body, c.headers...)
			if to == c.path { // no edge has seen it
				wantStatus(t, r, c.status)
			} else {
				wantError(t, r, c.status, c.code)
			}
			if got := into[envelope](t, r).Error.Code; got != c.code {
				t.Errorf("%s, want %s", got, c.code)
			}
			said := "none"
			for _, d := range into[envelope](t, r).Error.Details {
				said = d.Field + " " + d.Issue + ": " + d.Expected
			}
			if c.says != "" && !strings.HasPrefix(said, c.says) {
				t.Errorf("said %q, want %q", said, c.says)
			}
			if len(c.key) > 20 && strings.Contains(r.body, c.key[20:]) {
				t.Error("a part of the key is in the answer")
			}
		})
	}
}

// unknownKey has the form and the checksum of a key that was never made.
const unknownKey = "slk_0000000000001_00000000000000000000000000000000nXsGj2"

func TestMissingScopeIsNamed(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	key, _ := s.newKey(t, "clips:write")
	r := call(t, http.MethodGet, s.url("/v1/streams"), key, nil)
	wantError(t, r, 403, "AUTH_002")
	if d := into[envelope](t, r).Error.Details; len(d) != 1 || d[0].Expected != "streams:read" {
		t.Fatal(r.body)
	}
}

func TestWildcards(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	all, _ := s.newKey(t, "streams:*")
	made := s.createStream(t, all, "by wildcard")
	admin := s.dev["SLUICE_ADMIN_KEY"]
	wantStatus(t, call(t, http.MethodDelete, s.url("/v1/streams/"+made.ID), admin, nil), http.StatusNoContent)
}

func TestExpiredKey(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	// Time enough for a busy machine to run the command and use the key.
	status, out, errs := sluice(t, s.cli(), "key", "create", "--name", "short", "--scope", "streams:read",
		"--expires-at", time.Now().Add(10*time.Second).UTC().Format(time.RFC3339), "--output", "json")
	if status != 0 {
		t.Fatal(status, errs)
	}
	key := intoText[struct{ Key string }](t, out).Key
	s.accepted(t, key)
	eventually(t, "the key expires", func() error {
		return s.answers(key, http.StatusUnauthorized)
	})
	wantError(t, call(t, http.MethodGet, s.url("/v1/streams"), key, nil), 401, "AUTH_001")
}

func TestValidate(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	key, id := s.newKey(t, "streams:read", "clips:write")
	r := call(t, http.MethodGet, s.url("/v1/auth/validate"), key, nil)
	wantStatus(t, r, 200)
	v := into[struct {
		Valid     bool
		KeyID     string `json:"key_id"`
		Scopes    []string
		ExpiresAt *time.Time `json:"expires_at"`
	}](t, r)
	if !v.Valid || v.KeyID != id || len(v.Scopes) != 2 || v.ExpiresAt == nil || time.Until(*v.ExpiresAt) < 89*24*time.Hour {
		t.Fatal(r.body)
	}
	wantError(t, call(t, http.MethodGet, s.url("/v1/auth/validate"), "", nil), 401, "authentication_required")
}

// What a client sends under our identity header never reaches a product.
func TestForgedIdentityIsDropped(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	forged := "v1;a=acct_0000000000000;k=key_0000000000000;p=local;s=*;e=9999999999;m=" + strings.Repeat("00", 32)
	key := s.dev["SLUICE_API_KEY"]
	wantStatus(t, call(t, http.MethodGet, s.url("/v1/streams"), key, nil, "X-Sluice-Identity", forged, "x-sluice-identity", forged), 200)
	wantError(t, call(t, http.MethodGet, s.url("/v1/streams"), "", nil, "X-Sluice-Identity", forged), 401, "authentication_required")
	r := call(t, http.MethodGet, s.url("/v1/streams"), key, nil, "X_Sluice_Identity", forged)
	wantError(t, r, 400, "invalid_request")
}

func TestTwoCredentialsAreNone(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	key := s.dev["SLUICE_API_KEY"]
	wantError(t, call(t, http.MethodGet, s.url("/v1/streams"), key, nil, "Authorization", "Bearer "+key), 400, "repeated_header")
}

// accepted waits until the edge lets key list streams.
func (s *stack) accepted(t testing.TB, key string) {
	t.Helper()
	eventually(t, "the key is accepted", func() error { return s.answers(key, http.StatusOK) })
}

// refused waits until the edge does not know key any more.
func (s *stack) refused(t testing.TB, key string) {
	t.Helper()
	eventually(t, "the key is refused", func() error { return s.answers(key, http.StatusUnauthorized) })
}

// known waits until the edge knows key, whatever its scopes.
func (s *stack) known(t testing.TB, key string) {
	t.Helper()
	eventually(t, "the key is known", func() error {
		r, err := try(http.MethodGet, s.url("/v1/auth/validate"), key, nil)
		return unless(err, r, http.StatusOK)
	})
}

func (s *stack) answers(key string, status int) error {
	r, err := try(http.MethodGet, s.url("/v1/streams"), key, nil)
	return unless(err, r, status)
}
