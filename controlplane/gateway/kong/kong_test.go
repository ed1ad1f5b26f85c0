package kong

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"sluice.dev/sluice/controlplane/accounts/keyfile"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/platform/limits/growth"
)

// alone is d with its defaults, and without what is built in.
func alone(d config.Document) config.Document {
	d.Include = nil
	whole, _ := d.Expand("")
	return whole
}

var update = flag.Bool("update", false, "rewrite testdata")

var now = time.Unix(1_795_000_600, 0)

// read imports a file of testdata.
func read(t testing.TB, name string) ([]byte, Result) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name + ".yml")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Import(b, now)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return b, r
}

// text is all of a result, for people.
func text(t testing.TB, r Result) string {
	t.Helper()
	js, err := json.Marshal(r.Document)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := yaml.JSONToYAML(js)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	b.Write(doc)
	b.WriteString("---\n")
	if err := keyfile.Write(&b, r.Keys); err != nil {
		t.Fatal(err)
	}
	b.WriteString("---\n")
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "%d: %s: %s: %s\n", n.Line, n.Severity, n.Place, n.Text)
	}
	return b.String()
}

func TestWhatFilesBecome(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"keys", "paths", "strange", "transform"} {
		_, r := read(t, name)
		if err := alone(r.Document).Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got, golden := text(t, r), "testdata/"+name+".golden"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil || got != string(want) {
			t.Errorf("%s is not what it was: run with -update and look at the difference (%v)", name, err)
		}
	}
}

func TestNoSecretIsInAResult(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"keys", "strange"} {
		b, r := read(t, name)
		got := text(t, r)
		for _, secret := range []string{"Jq8vT2nL5rXw9KdPz3Bf", "Wm4yH7cQ1sVb6NgEk0Zt", "Rf5uD8jM2aYx7CkSo9Lh", "Hd3wP8eUq6Tz1VnXb5Ks", "Gt6iR1hOb8Zp3LsDu7Qv",
			"not-a-key-at-all", "do-not-print-this", "aaaaaaaaaaaaaaaa", "key: short"} {
			if strings.Contains(got, secret) {
				t.Errorf("%s shows %s", name, secret)
			}
		}
		if !bytes.Contains(b, []byte("key")) {
			t.Fatal("there is nothing to show")
		}
	}
}

// What Kong kept closed is not open here: every route that a plugin identified callers
// for asks for a credential, or is not there.
func TestNothingIsOpenedForWantOfAPlugin(t *testing.T) {
	t.Parallel()
	for plugin, want := range map[string]string{"key-auth": "key", "jwt": "token", "openid-connect": "token", "basic-auth": "key", "hmac-auth": "key", "ldap-auth": "key",
		"oauth2": "key", "ip-restriction": "", "opa": "", "mtls-auth": "", "acl": ""} {
		for at, form := range map[string]string{
			"route":  `{"services":[{"name":"s","url":"http://a","routes":[{"name":"r","paths":["/r"],"plugins":[{"name":%q,"config":{"allow":["g"]}}]}]}]`,
			"nested": `{"services":[{"name":"s","url":"http://a","plugins":[{"name":%q,"config":{"allow":["g"]}}],"routes":[{"name":"r","paths":["/r"]}]}]`,
			"named":  `{"services":[{"name":"s","url":"http://a","routes":[{"name":"r","paths":["/r"]}]}],"plugins":[{"service":{"name":"s"},"name":%q,"config":{"allow":["g"]}}]`,
			"global": `{"services":[{"name":"s","url":"http://a","routes":[{"name":"r","paths":["/r"]}]}],"plugins":[{"name":%q,"config":{"allow":["g"]}}]`,
		} {
			r, err := Import([]byte(fmt.Sprintf(form, plugin)+`,"_format_version":"3.0"}`), now)
			if err != nil {
				t.Fatal(err)
			}
			for _, route := range r.Document.Routes {
				if want == "" || len(route.Auth) != 1 || route.Auth[0] != want {
					t.Errorf("%s, %s: %+v", plugin, at, route)
				}
			}
			if (want != "") != (len(r.Document.Routes) > 0) {
				t.Errorf("%s, %s: %d routes", plugin, at, len(r.Document.Routes))
			}
		}
	}
}

func TestFilesThatAreNotKongs(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "a: b", "- a", "_format_version: '9'", "_format_version: [", "a: *none", "a: &a [*a]", "--- \na: b\n---\na: c",
		strings.Repeat("[", 200), strings.Repeat("a", MaxBytes+1)} {
		if _, err := Import([]byte(text), now); err == nil || len(err.Error()) > 1000 {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	bomb := "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n"
	for n := range 9 {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", n+1, n+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", n), 10), ","))
	}
	if _, err := Import([]byte(bomb), now); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("aliases of aliases: %v", err)
	}
}

func FuzzImport(f *testing.F) {
	for _, name := range []string{"keys", "paths", "strange", "transform"} {
		b, err := os.ReadFile("testdata/" + name + ".yml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"_format_version":"3.0","services":[{"url":"http://a:1","routes":[{"paths":["~/a/(?<b>[^/]+)$"]}]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<14 {
			return
		}
		r, err := Import(b, now)
		if err != nil {
			return
		}
		if err := alone(r.Document).Validate(); err != nil {
			t.Fatalf("%v\n%s", err, b)
		}
		if len(r.Notes) > maxNotes+1 {
			t.Fatal("notes without end")
		}
		growth.Linear(t, len(b), 1<<14, 4<<20, func() { _, _ = Import(b, now) })
	})
}
