package envoy

import (
	"encoding/json"
	"os"
	"testing"
)

// The file holds a key: its owner's only, and replaced whole.
func TestSecretFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, key := range []string{"first", "second"} {
		if err := WriteSecret(dir, []byte("chain"), []byte(key)); err != nil {
			t.Fatal(err)
		}
		var file struct {
			Resources []struct {
				Name string
				TLS  struct {
					Chain struct{ Inline_string string } `json:"certificate_chain"`
					Key   struct{ Inline_string string } `json:"private_key"`
				} `json:"tls_certificate"`
			}
		}
		b, err := os.ReadFile(secretFile(dir))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &file); err != nil || len(file.Resources) != 1 {
			t.Fatalf("%s: %v", b, err)
		}
		if r := file.Resources[0]; r.Name != SecretListener || r.TLS.Chain.Inline_string != "chain" || r.TLS.Key.Inline_string != key {
			t.Errorf("%s", b)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), info, err)
		}
	}
	if err := WriteSecret(secretFile(dir), nil, nil); err == nil {
		t.Error("a file is no folder")
	}
}
