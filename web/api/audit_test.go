package api

import (
	"strings"
	"testing"
)

// Every change of ours leaves an entry with its actor, and none holds a secret.
func TestEveryChangeIsAudited(t *testing.T) {
	t.Parallel()
	b := setup(t)
	session, admin := bearer(b.seeded.SessionToken), bearer(b.seeded.AdminKey)
	from := header{"X-Sluice-Client-Address": "192.0.2.7", "X-Forwarded-For": "192.0.2.7, 10.9.9.9", "X-Request-ID": "req-7"}
	account := "/admin/v1/accounts/" + b.seeded.Account
	_, key := call(b.public, "POST", "/v1/auth/keys", `{"name":"ci","scopes":["streams:read"]}`, session, from)
	id := "/v1/auth/keys/" + key["id"].(string)
	_, next := call(b.public, "POST", id+"/rotate", `{}`, session, from)
	for _, c := range []struct {
		method, path, body string
		with               header
		action             string
	}{
		{"PATCH", id, `{"name":"new"}`, session, "key.change"},
		{"DELETE", id, ``, session, "key.revoke"},
		{"POST", "/v1/auth/sessions", `{"email":"` + b.seeded.Email + `","password":"` + b.seeded.Password + `"}`, nil, "session.create"},
		{"POST", "/admin/v1/accounts", `{"name":"B","plan":"pro"}`, admin, "account.create"},
		{"PATCH", account, `{"plan":"pro"}`, admin, "account.update"},
		{"PUT", account + "/limits/events", `{"per_minute":5}`, admin, "limit.set"},
		{"DELETE", account + "/limits/events", ``, admin, "limit.remove"},
		{"POST", account + "/users", `{"email":"a@b.example","role":"member","password":"p4ssw0rd-p4ssw0rd"}`, admin, "user.add"},
		{"POST", "/admin/v1/sessions", `{"email":"a@b.example"}`, admin, "session.create"},
		{"DELETE", "/v1/auth/sessions/current", ``, session, "session.end"},
	} {
		h, address := b.public, "192.0.2.7"
		if strings.HasPrefix(c.path, "/admin/") {
			h, address = b.admin, "192.0.2.1" // httptest's: no edge says there who calls, and what the caller says counts for nothing
		}
		if w, got := call(h, c.method, c.path, c.body, c.with, from); w.Code >= 300 {
			t.Fatalf("%s %s: %d %v", c.method, c.path, w.Code, got)
		}
		_, log := call(b.admin, "GET", "/admin/v1/audit?limit=1", "", admin)
		e := log["data"].([]any)[0].(map[string]any)
		if e["action"] != c.action || e["actor"] == "system" || e["address"] != address || e["request_id"] != "req-7" {
			t.Errorf("%s %s: %v", c.method, c.path, e)
		}
	}
	w, log := call(b.admin, "GET", "/admin/v1/audit?limit=100", "", admin)
	if n := log["pagination"].(map[string]any)["total"].(float64); n < 12 {
		t.Errorf("%v entries", n)
	}
	for name, secret := range map[string]string{"key": key["key"].(string), "rotated key": next["key"].(string), "token": b.seeded.SessionToken,
		"password": "p4ssw0rd-p4ssw0rd", "hash": "argon2id"} {
		if strings.Contains(w.Body.String(), secret) {
			t.Errorf("the log holds a %s", name)
		}
	}
}
