package app

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/migrations"
)

func settings(set map[string]string) Environment {
	return Environment{Lookup: func(string) (string, bool) { return "", false }}.With(set)
}

// The readers of a variable are processes.
func TestEveryVariableHasItsReaders(t *testing.T) {
	t.Parallel()
	for _, v := range variables {
		for name := range strings.FieldsSeq(v.readers) {
			if !slices.Contains(processNames, name) {
				t.Errorf("%s: %s is no process", v.name, name)
			}
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
	e.With(nil).Get("SLUICE_FEED_TOKEN")
}

func TestWhatAProcessOfAStackIsGiven(t *testing.T) {
	t.Parallel()
	l := &localStack{
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
	set, err := platform.ProductSettings("media")
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
	if !bytes.Equal(s.own[1].Key, identityheader.ProductSecret(all.platform[1], "media")) {
		t.Error("the second is not that of the second")
	}
	if set, err := platform.ProductSettings("runtime"); err != nil || set["SLUICE_SECRETS_KEY"] != "" {
		t.Error("a runtime gets a key that seals", err)
	}
	if _, err := product.ProductSettings("runtime"); err == nil {
		t.Error("one product's secret gives another's")
	}
	if _, err := product.platformSecret(); err == nil || !strings.Contains(err.Error(), "control plane") {
		t.Error("a control plane starts with the secret of a product", err)
	}
	for name, e := range map[string]Environment{"media": product, "": platform} {
		if c, err := e.streams(); err != nil || c.Product != name {
			t.Errorf("the worker speaks for %q: %v", c.Product, err)
		}
	}
	if set, _ := platform.ProductSettings("runtime"); settings(set).Get("SLUICE_IDENTITY_SECRETS") != "" {
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
	set, err := platform.ProductSettings("media")
	if err != nil {
		t.Fatal(err)
	}
	product := settings(set)
	whole, _ := platform.mediaBox(false)
	own, err := product.mediaBox(false)
	anew, anewErr := platform.mediaBox(true)
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
