package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/gateway/config"
)

// What init writes has no fault with either profile, is short, and says the
// service's address in full once it is expanded.
func TestInitWritesADocument(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ upstream, name, product, address, host, server, prefix string }{
		{"http://127.0.0.1:3000", "", "app", "127.0.0.1:3000", "127.0.0.1:3000", "", ""},
		{"http://localhost:3000/", "", "app", "localhost:3000", "localhost:3000", "", ""},
		{"http://[::1]:3000", "shop", "shop", "[::1]:3000", "[::1]:3000", "", ""},
		{"https://api.orders.example.com", "", "orders", "api.orders.example.com:443", "api.orders.example.com", "api.orders.example.com", ""},
		{"https://orders.example.com:8443/v2/", "my-orders", "my-orders", "orders.example.com:8443", "orders.example.com:8443", "orders.example.com", "/v2"},
	} {
		text, err := starter(c.upstream, c.name)
		if err != nil {
			t.Errorf("%s: %v", c.upstream, err)
			continue
		}
		if lines := strings.Count(string(text), "\n"); lines > 12 || !strings.HasPrefix(string(text), "# yaml-language-server: $schema=sluice.schema.json\n") {
			t.Errorf("%s: %d lines\n%s", c.upstream, lines, text)
		}
		for _, profile := range config.Profiles {
			d, _, err := config.ParseYAML(text)
			if err != nil {
				t.Fatal(err)
			}
			d, faults := d.Expand(profile)
			if err := d.Validate(); err != nil || faults != nil {
				t.Errorf("%s with %s: %v %v", c.upstream, profile, err, faults)
			}
			p, r := d.Products[0], d.Routes[0]
			if p.Name != c.product || p.Upstreams[0].Address != c.address || p.Host != c.host || (p.TLS == nil) != (c.server == "") || p.TLS != nil && p.TLS.ServerName != c.server {
				t.Errorf("%s: %+v", c.upstream, p)
			}
			if r.Path != "/*" || r.Auth[0] != "key" || r.Scope != strings.ReplaceAll(c.product, "-", "_")+":use" || (r.Rewrite == nil) != (c.prefix == "") || r.Rewrite != nil && r.Rewrite.Prefix != c.prefix {
				t.Errorf("%s: %+v", c.upstream, r)
			}
		}
	}
}

func TestInitRefuses(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--upstream", "localhost:3000"}, {"--upstream", "ftp://a"}, {"--upstream", "http://user:secret@a"}, {"--upstream", "http://a?b"}, {"--upstream", "https://10.0.0.1"},
		{"--upstream", "http://a/{b}"}, {"--upstream", "http://a", "--name", "A b"}, {"--upstream", "http://a", "--name", "media"},
	} {
		out := filepath.Join(t.TempDir(), "sluice.yaml")
		if _, err := executeApply(t, initCommand(), append(args, "-o", out)...); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", args, err)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%q: there is a file", args)
		}
	}
}

// A file that is there stays, unless --force says otherwise; the schema stands
// beside it, so that editors find it.
func TestInitOverwritesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "sluice.yaml")
	args := []string{"--upstream", "http://127.0.0.1:3000", "-o", out}
	if text, err := executeApply(t, initCommand(), args...); err != nil || !strings.Contains(text, "sluice apply -f "+out) {
		t.Fatal(err, text)
	}
	if b, err := os.ReadFile(filepath.Join(dir, schemaFile)); err != nil || !bytes.Equal(b, config.Schema) {
		t.Error(err)
	}
	if err := os.WriteFile(out, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := executeApply(t, initCommand(), args...); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Error(err)
	}
	if b, _ := os.ReadFile(out); string(b) != "mine" {
		t.Errorf("%s", b)
	}
	if _, err := executeApply(t, initCommand(), append(args, "--force")...); err != nil {
		t.Error(err)
	}
	text, err := executeApply(t, initCommand(), "--upstream", "http://127.0.0.1:3000", "-o", "-")
	if b, _ := os.ReadFile(out); err != nil || string(b) != text {
		t.Errorf("%v %s", err, text)
	}
}
