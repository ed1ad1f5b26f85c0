package contexts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/cmd/sluice/contexts"
)

func TestContextsAreKept(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "deep", "contexts.yaml")
	f, err := contexts.Read(name)
	if err != nil || len(f.Contexts) > 0 {
		t.Fatalf("a file that is not there: %v %v", f, err)
	}
	c := contexts.Context{AdminURL: "https://admin.example", AdminKey: "slk_1"}
	if err := f.Set("prod", c); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(name); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	again, err := contexts.Read(name)
	if got, _ := again.Get("prod"); err != nil || got != c || again.Current != "prod" {
		t.Errorf("%+v %v", again, err)
	}
	if _, err := again.Get("staging"); err == nil || !strings.Contains(err.Error(), "sluice login staging") {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(name), ".contexts-*")); len(left) > 0 {
		t.Error("left behind:", left)
	}
}

func TestWhatIsNoContext(t *testing.T) {
	t.Parallel()
	var f contexts.File
	for _, name := range []string{"", "local", "../x", "a b", strings.Repeat("a", 65)} {
		if err := f.Set(name, contexts.Context{}); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
	name := filepath.Join(t.TempDir(), "contexts.yaml")
	if err := os.WriteFile(name, []byte("contexts: [slk_secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := contexts.Read(name); err == nil || strings.Contains(err.Error(), "slk_secret") {
		t.Error(err)
	}
}
