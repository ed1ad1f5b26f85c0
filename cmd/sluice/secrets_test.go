package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/identity"
	"sluice.dev/sluice/migrations"
)

func settings(set map[string]string) environment {
	return environment{lookup: func(string) (string, bool) { return "", false }}.with(set)
}

// Every variable names its readers, and they are processes.
func TestEveryVariableHasItsReaders(t *testing.T) {
	t.Parallel()
	for _, v := range variables {
		names, listed := readers[strings.TrimPrefix(v.name, variablePrefix)]
		if !listed {
			t.Errorf("%s: name the processes that read it in readers.go", v.name)
		}
		for name := range strings.FieldsSeq(names) {
			if !slices.Contains(processNames, name) {
				t.Errorf("%s: %s is no process", v.name, name)
			}
		}
	}
	for name := range readers {
		if !known(variablePrefix + name) {
			t.Errorf("%s is no variable", name)
		}
	}
}

func TestProcessesReadTheirOwnVariablesOnly(t *testing.T) {
	t.Parallel()
	e := settings(map[string]string{"SLUICE_FEED_TOKEN": "x"})
	e.process = "media"
	defer func() {
		if recover() == nil {
			t.Error("media reads the token of the feed")
		}
	}()
	e.with(nil).get("SLUICE_FEED_TOKEN")
}

func TestWhatAProcessOfAStackIsGiven(t *testing.T) {
	t.Parallel()
	l := &local{
		set: map[string]string{"SLUICE_SECRETS_KEY": "platform", "SLUICE_FEED_TOKEN": "token", "SLUICE_STATE_DIR": "/state"},
		own: map[string]map[string]string{"media": {"SLUICE_SECRETS_KEY": "own"}},
	}
	inherited := []string{"PATH=/bin", "LC_ALL=C", "OPENAI_API_KEY=sk", "SLUICE_ADMIN_KEY=admin", "SLUICE_SECRETS_KEY=of the shell", "SLUICE_OTHER=x", "SLUICE_EDGE_NAME=shell"}
	for process, want := range map[string]string{
		"media":        "LC_ALL=C PATH=/bin SLUICE_SECRETS_KEY=own SLUICE_STATE_DIR=/state",
		"controlplane": "LC_ALL=C PATH=/bin SLUICE_FEED_TOKEN=token SLUICE_SECRETS_KEY=platform",
		"runtime":      "LC_ALL=C OPENAI_API_KEY=sk PATH=/bin SLUICE_OTHER=x",
		"edge":         "LC_ALL=C PATH=/bin SLUICE_EDGE_NAME=edge-2 SLUICE_FEED_TOKEN=token SLUICE_STATE_DIR=/state",
	} {
		got := l.environ(inherited, process, map[string]string{"SLUICE_EDGE_NAME": "edge-2"})
		slices.Sort(got)
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: %s\nwant %s", process, text, want)
		}
	}
}

// What a product gets is derived, in the order of the platform's, and is enough for
// what it does; the platform's cannot do without the prefix that says whose it is.
func TestSecretsOfAProduct(t *testing.T) {
	t.Parallel()
	next, now := strings.Repeat("1f", 32), strings.Repeat("2e", 32)
	platform := settings(map[string]string{"SLUICE_IDENTITY_SECRETS": next + "," + now, "SLUICE_SECRETS_KEY": next + "," + now})
	set, err := platform.productSettings("media")
	if err != nil {
		t.Fatal(err)
	}
	product := settings(set)
	if strings.Contains(set["SLUICE_IDENTITY_SECRETS"]+set["SLUICE_SECRETS_KEY"], next) {
		t.Error("the platform's stand in it")
	}
	s, err := product.identities()
	if err != nil || len(s.platform) != 0 || len(s.own) != 2 || s.own[0].Product != "media" || len(s.own[1].Key) != 32 {
		t.Fatalf("%+v %v", s, err)
	}
	all, _ := platform.identities()
	if !bytes.Equal(s.own[1].Key, identity.ProductSecret(all.platform[1], "media")) {
		t.Error("the second is not that of the second")
	}
	if set, err := platform.productSettings("runtime"); err != nil || set["SLUICE_SECRETS_KEY"] != "" {
		t.Error("a runtime gets a key that seals", err)
	}
	if _, err := product.productSettings("runtime"); err == nil {
		t.Error("one product's secret gives another's")
	}
	if _, err := product.platformSecret(); err == nil || !strings.Contains(err.Error(), "control plane") {
		t.Error("a control plane starts with the secret of a product", err)
	}
	for name, e := range map[string]environment{"media": product, "": platform} {
		if c, err := e.streams(); err != nil || c.Product != name {
			t.Errorf("the worker speaks for %q: %v", c.Product, err)
		}
	}
	if set, _ := platform.productSettings("runtime"); settings(set).get("SLUICE_IDENTITY_SECRETS") != "" {
		if _, err := settings(set).streams(); err == nil {
			t.Error("a worker acts on streams with the secret of the runtime")
		}
	}
}

// The media product opens what it has sealed with the platform's key, once that is
// sealed anew, and the worker what the product seals with its own.
func TestSealingByAProduct(t *testing.T) {
	t.Parallel()
	platform := settings(map[string]string{"SLUICE_IDENTITY_SECRETS": strings.Repeat("1f", 32), "SLUICE_SECRETS_KEY": strings.Repeat("2e", 32)})
	set, err := platform.productSettings("media")
	if err != nil {
		t.Fatal(err)
	}
	product := settings(set)
	whole, _ := platform.mediaBox()
	own, err := product.mediaBox()
	anew, anewErr := platform.ownBox()
	others, othersErr := platform.box()
	if err != nil || anewErr != nil || othersErr != nil {
		t.Fatal(err, anewErr, othersErr)
	}
	bound := "row"
	before, after, theirs := whole.Seal([]byte("x"), bound), anew.Seal([]byte("x"), bound), others.Seal([]byte("x"), bound)
	for name, c := range map[string]struct {
		sealed []byte
		opens  bool // with the product's own alone
	}{"by the platform's": {before, false}, "anew": {after, true}, "of a webhook": {theirs, false}, "by the product": {own.Seal([]byte("x"), bound), true}} {
		if _, err := own.Open(c.sealed, bound); (err == nil) != c.opens {
			t.Errorf("%s: the product opens it: %v", name, err)
		}
		if _, err := whole.Open(c.sealed, bound); err != nil {
			t.Errorf("%s: who holds the platform's does not open it: %v", name, err)
		}
	}
}

func TestDatabaseLogins(t *testing.T) {
	t.Parallel()
	list, err := settings(map[string]string{"SLUICE_DATABASE_LOGINS": "media:m:secret:with:colons,backup:b:other"}).databaseLogins()
	if err != nil || len(list) != 2 || list[0] != (migrations.Login{Role: migrations.Media, User: "m", Password: "secret:with:colons"}) || list[1].Role != migrations.Backup {
		t.Errorf("%+v %v", list, err)
	}
	for _, bad := range []string{"media:m", "edge:e:hunter2", "media::hunter2", "media:m:", "hunter2"} {
		if _, err := settings(map[string]string{"SLUICE_DATABASE_LOGINS": bad}).databaseLogins(); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if long := loginName("controlplane", strings.Repeat("d", 63)); len(long) > 63 || long == loginName("controlplane", strings.Repeat("d", 62)) {
		t.Error(long)
	}
}

// Each process finds its own certificate in its folder, and the CA's key nowhere.
func TestCertificatesAreSharedOut(t *testing.T) {
	t.Parallel()
	made, each := t.TempDir(), t.TempDir()
	for range 2 { // to renew
		c := certsCommand()
		c.SetArgs([]string{made, "--edge", "edge-1,edge-2", "--each", each})
		c.SetOut(&bytes.Buffer{})
		if err := c.Execute(); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	err := filepath.WalkDir(each, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(each, path)
			got = append(got, name)
			info, _ := d.Info()
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v", name, info.Mode())
			}
		}
		return err
	})
	want := "controlplane/ca.pem controlplane/controlplane.key controlplane/controlplane.pem edge-1/ca.pem edge-1/edge-1.key edge-1/edge-1.pem edge-2/ca.pem edge-2/edge-2.key edge-2/edge-2.pem"
	if text := strings.Join(got, " "); err != nil || text != want {
		t.Errorf("%s %v", text, err)
	}
	if _, err := settings(map[string]string{"SLUICE_XDS_TLS_DIR": filepath.Join(each, "edge-1")}).mutualEdge("edge-1"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(made, "ca.key")); err != nil {
		t.Error(err)
	}
}
