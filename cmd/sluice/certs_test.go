package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/certs"
)

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
	if _, err := certs.Open(certs.SourceConfig{Files: certs.In(filepath.Join(each, "edge-1"), "edge-1")}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(made, "ca.key")); err != nil {
		t.Error(err)
	}
}
