package actors

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"

	"sluice.dev/sluice/filters/identityheader"
)

// forbidden is a request that must be refused, and by which words.
type forbidden struct {
	what, method, path, key string
	headers                 []string // name, value, and so on
	status                  int      // 0: learned while all is well; see learn
	code                    string
	revoked, expired        time.Time
}

// noStream is the path of a stream that nobody has.
const noStream = "/v1/streams/strm_00000000000000000000"

// stranger is another account: it has a stream, and its keys are good from far
// away only.
type stranger struct{ account, key, stream string }

// far are the addresses from which the stranger may call; no client of the run has one.
const far, fromFar = "10.9.0.0/16", "10.9.0.1"

func (w *World) stranger(ctx context.Context) (s stranger, err error) {
	admin := func(method, path string, in, out any) {
		if err == nil {
			_, _, err = w.Fleet.Admin(ctx, w.Client, 0, method, path, "", in, out)
		}
	}
	var account struct{ ID string }
	admin(http.MethodPost, "accounts", map[string]any{"name": "a stranger", "plan": "local"}, &account)
	var key struct{ Key string }
	admin(http.MethodPost, "accounts/"+account.ID+"/keys", map[string]any{"name": "a stranger's", "scopes": []string{"streams:*"}}, &key)
	if err != nil {
		return s, err
	}
	s = stranger{account: account.ID, key: key.Key}
	var made struct{ ID string }
	if err := w.Fleet.Await(ctx, func() error { // the edge has to hear of the key first
		a := w.ask(ctx, request{method: http.MethodPost, url: w.Fleet.Edges[0].Gateway + "/v1/streams", key: s.key, body: map[string]any{"title": "a stranger's", "protocol": "rtmp"}, repeat: "a stranger's"})
		if !a.ok() {
			return fmt.Errorf("the stranger's stream is answered %d %s", a.status, a.code)
		}
		return a.into(&made)
	}); err != nil {
		return s, err
	}
	s.stream = made.ID
	admin(http.MethodPut, "accounts/"+s.account+"/allowlist", map[string]any{"addresses": []string{far}}, nil)
	return s, err
}

// catalogue is all that the prober tries, with keys that were made for it: one
// that is revoked, one that has expired, and a narrow one without streams:read.
func (w *World) catalogue(s stranger, revoked, expired, narrow string, ended time.Time) []forbidden {
	const get = http.MethodGet
	list := []forbidden{
		{what: "no credential", method: get, path: "/v1/streams", status: 401, code: "authentication_required"},
		{what: "revoked key", method: get, path: "/v1/streams", key: revoked, status: 401, code: "invalid_api_key"},
		{what: "expired key", method: get, path: "/v1/streams", key: expired, status: 401, code: "AUTH_001", expired: ended},
		{what: "broken key", method: get, path: "/v1/streams", key: w.key + "x", status: 401, code: "invalid_api_key"},
		{what: "missing scope", method: get, path: "/v1/streams", key: narrow, status: 403, code: "AUTH_002"},
		{what: "missing scope to write", method: http.MethodDelete, path: noStream, key: narrow, status: 403, code: "AUTH_002"},
		{what: "unmapped route", method: get, path: "/v1/nowhere", key: w.key, status: 403, code: "ROUTE_NOT_MAPPED"},
		{what: "a stranger's stream", method: get, path: "/v1/streams/" + s.stream, key: w.key, status: 404, code: "not_found"},
		{what: "to delete a stranger's stream", method: http.MethodDelete, path: "/v1/streams/" + s.stream, key: w.key, status: 404, code: "not_found"},
		{what: "address that is not allowed", method: get, path: "/v1/streams", key: s.key, status: 403, code: "AUTH_003"},
		{what: "admin API at the gateway", method: get, path: "/admin/v1/edges", key: w.key, status: 404, code: "not_found"},
	}
	list = append(list, w.claims(s)...)
	list = append(list, w.forgeries(s, narrow)...)
	return append(list, spellings(narrow)...)
}

// claims say that a request comes from where the stranger's key is good.
func (w *World) claims(s stranger) (list []forbidden) {
	voucher := identityheader.SignVoucher([]byte(strings.Repeat("x", 32)), identityheader.Voucher{Address: fromFar, Key: s.key}, time.Now().Add(time.Hour).Unix())
	for name, value := range map[string]string{"X-Forwarded-For": fromFar, "X-Real-Ip": fromFar, "Forwarded": "for=" + fromFar, "True-Client-Ip": fromFar,
		"X-Envoy-External-Address": fromFar, "X-Sluice-Client-Address": fromFar, "Sluice-Voucher": voucher} {
		list = append(list, forbidden{what: "address claimed by " + name, method: http.MethodGet, path: "/v1/streams", key: s.key, headers: []string{name, value}, status: 403, code: "AUTH_003"})
	}
	return list
}

// forgeries say who calls as only edges may: signed with the very secret of the
// edges, as if it had leaked, for a time that outlasts the run.
func (w *World) forgeries(s stranger, narrow string) []forbidden {
	const get = http.MethodGet
	secret, err := hex.DecodeString(w.Fleet.Secret())
	if err != nil {
		panic(err) // the fleet has made it
	}
	sign := func(account string) string {
		return identityheader.Sign(secret, identityheader.Caller{Account: account, Key: "key_forged", Plan: "local", Scopes: []string{"*"}}, time.Now().Add(24*time.Hour).Unix())
	}
	ours, theirs := sign(w.account), sign(s.account)
	return []forbidden{
		{what: "forged identity", method: get, path: "/v1/streams", headers: []string{"x-sluice-identity", ours}, status: 401, code: "authentication_required"},
		{what: "forged identity, twice", method: get, path: "/v1/streams", headers: []string{"X-Sluice-Identity", ours, "X-Sluice-Identity", theirs}, status: 401, code: "authentication_required"},
		{what: "forged identity with underscores", method: get, path: "/v1/streams", headers: []string{"X_Sluice_Identity", ours}},
		{what: "forged identity, half underscored", method: get, path: "/v1/streams", headers: []string{"x-sluice_identity", ours}},
		{what: "forged identity as credential", method: get, path: "/v1/streams", key: ours},
		{what: "forged identity beside a narrow key", method: get, path: "/v1/streams", key: narrow, headers: []string{"x-sluice-identity", ours}, status: 403, code: "AUTH_002"},
		{what: "forged identity of a stranger", method: get, path: "/v1/streams/" + s.stream, key: w.key, headers: []string{"x-sluice-identity", theirs}, status: 404, code: "not_found"},
		{what: "two credentials", method: get, path: "/v1/streams", key: narrow, headers: []string{"Authorization", bearer(w.key)}, status: 400, code: "repeated_header"},
		{what: "two credentials joined", method: get, path: "/v1/streams", key: narrow + ", " + bearer(w.key), status: 400, code: "repeated_header"},
		{what: "another path by header", method: get, path: "/v1/streams", key: narrow, headers: []string{"X-Envoy-Original-Path", "/v1/health", "X-Original-Url", "/v1/health"}, status: 403, code: "AUTH_002"},
	}
}

// spellings are ways to write a path that the narrow key may not have.
func spellings(narrow string) (list []forbidden) {
	for _, path := range []string{"/v1/%73treams", "/v1/%61dmin", "//v1/streams", "/v1//streams", "/v1/./streams", "/v1/clips/../streams", "/v1/clips/%2e%2e/streams",
		"/v1/clips%2f..%2fstreams", "/v1/clips/..%5cstreams", "/v1/clips;/../streams", "/v1/streams;x=1", "/v1/streams%00", "/v1/streams/", "/v1/streams%20"} {
		list = append(list, forbidden{what: "GET " + path, method: http.MethodGet, path: path, key: narrow})
	}
	for _, path := range []string{"/v1/..;/streams", "/V1/streams"} { // which nobody serves
		list = append(list, forbidden{what: "GET " + path, method: http.MethodGet, path: path, key: narrow, status: 404, code: "not_found"})
	}
	return list
}
