package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestLibraries(t *testing.T) {
	t.Parallel()
	ldd := "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f1)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f2)\n\tstatically linked\n\tlibgone.so => not found\n"
	want := []string{"/lib/x86_64-linux-gnu/libm.so.6", "/lib64/ld-linux-x86-64.so.2"}
	if got := libraries(ldd); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A program comes with all that it loads, under the names by which it asks.
func TestProgramBringsItsLibraries(t *testing.T) {
	t.Parallel()
	tr := tree{t.TempDir()}
	if err := tr.program(t.Context(), "/bin/sh", "bin/sh"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bin/sh", "lib64/ld-linux-x86-64.so.2"} {
		if info, err := os.Stat(filepath.Join(tr.root, name)); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTreeFollowsLinks(t *testing.T) {
	t.Parallel()
	dir, tr := t.TempDir(), tree{t.TempDir()}
	for name, text := range map[string]string{"real": "text", "sub/deep": "deep"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"link": "real", "dangling": "nothing", "folder": "sub"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := tr.all(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"real": "text", "link": "text", "sub/deep": "deep"} {
		if got, err := os.ReadFile(filepath.Join(tr.root, dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	for _, name := range []string{"dangling", "folder"} {
		if _, err := os.Lstat(filepath.Join(tr.root, dir, name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	if err := tr.optional(filepath.Join(dir, "nothing"), "stand-in"); err != nil {
		t.Error(err)
	}
	if err := tr.same(filepath.Join(dir, "nothing")); err == nil {
		t.Error("a missing file is no error")
	}
}

// With other secrets a platform could not read what it has stored: they are made once.
func TestSecretsStay(t *testing.T) {
	t.Parallel()
	b := bakery{out: t.TempDir(), database: "db", base: "envoy"}
	product := "#!/bin/sh\necho SLUICE_IDENTITY_SECRETS=$3:of-$SLUICE_IDENTITY_SECRETS\necho SLUICE_SECRETS_KEY=$3:of-$SLUICE_SECRETS_KEY\n"
	if err := os.WriteFile(filepath.Join(b.out, "sluice"), []byte(product), 0o755); err != nil {
		t.Fatal(err)
	}
	read := func() string {
		t.Helper()
		if err := b.secrets(t.Context()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(b.out, "secrets.env"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := read()
	if first != read() {
		t.Error("they changed")
	}
	for _, name := range []string{"POSTGRES_PASSWORD=", "SLUICE_IDENTITY_SECRETS=", "SLUICE_SECRETS_KEY=", "SLUICE_FEED_TOKEN=", "SLUICE_POSTGRES_IMAGE=db\n", "SLUICE_BALANCER_IMAGE=envoy\n"} {
		if !strings.Contains(first, name) {
			t.Errorf("no %s", name)
		}
	}
	values, _ := parseEnv(first)
	if want := "media:of-" + values["SLUICE_SECRETS_KEY"]; values["MEDIA_SECRETS_KEY"] != want || values["WORKER_PASSWORD"] == values["MEDIA_PASSWORD"] {
		t.Errorf("%q, want %q", values["MEDIA_SECRETS_KEY"], want)
	}
	// A file of before gets what it lacks; what follows from a changed secret changes.
	before := "POSTGRES_PASSWORD=kept\nSLUICE_IDENTITY_SECRETS=new,old\nSLUICE_POSTGRES_IMAGE=mine\n"
	if err := os.WriteFile(filepath.Join(b.out, "secrets.env"), []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	if after := read(); !strings.HasPrefix(after, before) || !strings.Contains(after, "\nRUNTIME_IDENTITY_SECRETS=runtime:of-new,old\n") || !strings.Contains(after, "\nMEDIA_PASSWORD=") {
		t.Error(after)
	}
	if info, err := os.Stat(filepath.Join(b.out, "secrets.env")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}
