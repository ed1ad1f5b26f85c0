package seed

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

func local(t *testing.T, db *pgxpool.Pool, have map[string]string) Result {
	t.Helper()
	s := sessions.New(sessions.Config{DB: db, Issuer: "http://gw", Audience: "http://gw"})
	r, err := Local(t.Context(), db, Config{Have: have, Sessions: s})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Verify(t.Context(), r.SessionToken); err != nil {
		t.Fatalf("the session does not work: %v", err)
	}
	if _, err := s.SignIn(t.Context(), r.Email, r.Password, "127.0.0.1"); err != nil {
		t.Fatalf("the password does not work: %v", err)
	}
	return r
}

func environment(t *testing.T, r Result) map[string]string {
	t.Helper()
	text, err := Env(r, Addresses{Gateway: "http://127.0.0.1:8080", Database: "postgres://u:p@127.0.0.1/db?sslmode=disable&a=b"})
	if err != nil {
		t.Fatal(err)
	}
	have, err := ParseEnv(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return have
}

func TestSeedMakesWhatAStackNeeds(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	r := local(t, db, nil)
	store := apikeys.Store{DB: db}
	api, err := store.Find(t.Context(), r.APIKey)
	if err != nil || api.Account != r.Account || api.Plan != Plan || api.Admin() {
		t.Fatalf("%+v %v", api, err)
	}
	for _, want := range []string{"streams:read", "clips:write", "billing:write", "schedules:write"} {
		if !scopes.Covers(api.Scopes, want) {
			t.Errorf("the API key lacks %s", want)
		}
	}
	if scopes.Covers(api.Scopes, "*") {
		t.Error("the API key is an administrator's")
	}
	if admin, err := store.Find(t.Context(), r.AdminKey); err != nil || !admin.Admin() {
		t.Errorf("%+v %v", admin, err)
	}
}

func TestSeedAgainKeepsWhatWorks(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	first := local(t, db, nil)
	if again := local(t, db, environment(t, first)); again != first {
		t.Fatalf("\n%+v\n%+v", again, first)
	}
}

func TestSeedReplacesWhatDoesNot(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	first := local(t, db, nil)
	if _, err := db.Exec(t.Context(), `UPDATE api_keys SET revoked_at = now(); UPDATE sessions SET revoked_at = now()`); err != nil {
		t.Fatal(err)
	}
	have := environment(t, first)
	have["SLUICE_USER_PASSWORD"] = "not it"
	second := local(t, db, have)
	if second.Account != first.Account || second.APIKey == first.APIKey || second.AdminKey == first.AdminKey ||
		second.SessionToken == first.SessionToken || second.Password == first.Password {
		t.Fatalf("\n%+v\n%+v", first, second)
	}
}

// A key that lacks a scope which came with a newer version is made anew.
func TestSeedGrowsTheScopes(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	first := local(t, db, nil)
	if _, err := db.Exec(t.Context(), `INSERT INTO scopes (name, bit) VALUES ('lasers:fire', 100)`); err != nil {
		t.Fatal(err)
	}
	second := local(t, db, environment(t, first))
	if second.APIKey == first.APIKey || second.AdminKey != first.AdminKey {
		t.Fatalf("\n%+v\n%+v", first, second)
	}
}

func TestASessionAboutToEndIsReplaced(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	first := local(t, db, nil)
	s := sessions.New(sessions.Config{DB: db, Issuer: "http://gw", Audience: "http://gw"})
	soon := func() time.Time { return time.Now().Add(sessions.DefaultTTL - sessionMargin + time.Minute) }
	r, err := Local(t.Context(), db, Config{Have: environment(t, first), Sessions: s, Now: soon})
	if err != nil || r.SessionToken == first.SessionToken || r.APIKey != first.APIKey {
		t.Fatalf("a session with little time left must be replaced, a key not: %v", err)
	}
}

func TestEnvironmentFile(t *testing.T) {
	t.Parallel()
	vars, err := ParseEnv(bytes.NewReader([]byte("# c\n\nA=1\nB='x y&z'\nC=\n D=a=b\n")))
	if want := map[string]string{"A": "1", "B": "x y&z", "C": "", "D": "a=b"}; err != nil || !maps.Equal(vars, want) {
		t.Errorf("%v %v", vars, err)
	}
	if _, err := ParseEnv(bytes.NewReader([]byte("A=1\nrubbish"))); err == nil {
		t.Error("a line without = was read")
	}
	if _, err := Env(Result{Password: "a\nB=1"}, Addresses{}); err == nil {
		t.Error("a value that makes another line was written")
	}
}

func FuzzParseEnv(f *testing.F) {
	f.Add([]byte("A=1\nB='2'\n"))
	f.Add([]byte("A='"))
	f.Fuzz(func(t *testing.T, b []byte) {
		vars, err := ParseEnv(bytes.NewReader(b))
		for name := range vars {
			if err == nil && name == "" {
				t.Fatal("a variable without a name")
			}
		}
	})
}

// The names in dev.env are what every tool and document of the stack leans on.
func TestNamesInTheEnvironmentFile(t *testing.T) {
	t.Parallel()
	r := Result{Account: "acct_1", APIKey: "slk_api", AdminKey: "slk_admin", SessionToken: "a.b.c", Email: Email, Password: "p_-w"}
	got, err := Env(r, Addresses{Gateway: "http://127.0.0.1:8080", Runtime: "http://127.0.0.1:8090", Admin: "http://127.0.0.1:9090",
		Database: "postgres://u:p%40@127.0.0.1:5433/sluice?sslmode=disable", EnvoyAdmin: []string{"http://127.0.0.1:9901", "http://127.0.0.1:10001"},
		Extra: []Variable{{"SLUICE_EXTRA", "a b"}}})
	want := `# Written by ` + "`make up`" + `. Holds secrets of this local stack.
SLUICE_GATEWAY_URL=http://127.0.0.1:8080
SLUICE_RUNTIME_URL=http://127.0.0.1:8090
SLUICE_AUTH_URL=http://127.0.0.1:8080
SLUICE_ADMIN_URL=http://127.0.0.1:9090
SLUICE_ACCOUNT_ID=acct_1
SLUICE_API_KEY=slk_api
SLUICE_ADMIN_KEY=slk_admin
SLUICE_SESSION_TOKEN=a.b.c
SLUICE_USER_EMAIL=owner@sluice.local
SLUICE_USER_PASSWORD=p_-w
SLUICE_DATABASE_URL=postgres://u:p%40@127.0.0.1:5433/sluice?sslmode=disable
SLUICE_ENVOY_ADMIN_URLS=http://127.0.0.1:9901,http://127.0.0.1:10001
SLUICE_EXTRA='a b'
`
	if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
		t.Fatal(err, diff)
	}
}

// A shell reads the file as ParseEnv does.
func TestAShellReadsTheEnvironmentFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "dev.env")
	odd := "postgres://u:$HOME`id`\\\"x\"@h/db?a=1&b=2;c|d<e>#(f)*"
	text, err := Env(Result{}, Addresses{Database: odd})
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `. "$0"; printf %s "$SLUICE_DATABASE_URL"`, file).Output()
	if err != nil || string(out) != odd {
		t.Fatalf("%q %v", out, err)
	}
	if vars, err := ParseEnv(bytes.NewReader(text)); err != nil || vars["SLUICE_DATABASE_URL"] != odd {
		t.Fatalf("%q %v", vars, err)
	}
}
