//go:build clients

package e2e

// The SDKs of sdk/, by the programs of docs/sdks.md as they stand there: each creates,
// goes through a list, is refused, streams a completion, and receives and verifies a
// webhook of a running stack. Needs Go, Node, npm and Python.

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

func TestSDKClients(t *testing.T) {
	s := own(t, map[string]string{"SLUICE_WEBHOOK_ALLOW_CIDRS": "127.0.0.1/32"})
	for range 4 { // with the program's own three pages
		wantStatus(t, call(t, http.MethodPost, s.url("/v1/webhooks"), s.dev["SLUICE_API_KEY"],
			map[string]any{"url": "http://127.0.0.1:9/", "events": []string{"test.webhook"}, "secret": webhookSecret}), http.StatusCreated)
	}
	root, err := filepath.Abs("../sdk")
	if err != nil {
		t.Fatal(err)
	}
	for language, sdk := range map[string]struct {
		file    string
		prepare func(t *testing.T, dir string) []string // variables for the program
		program []string
	}{
		"go": {"main.go", func(t *testing.T, dir string) []string {
			module := "module program\n\ngo 1.24.0\n\nrequire sluice.dev/sluice/sdk/go v0.0.0\n\nreplace sluice.dev/sluice/sdk/go => " + root + "/go\n"
			if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(module), 0o600); err != nil {
				t.Fatal(err)
			}
			return nil
		}, []string{"go", "run", "."}},
		"python": {"main.py", func(*testing.T, string) []string {
			return []string{"PYTHONPATH=" + root + "/python", "PYTHONDONTWRITEBYTECODE=1"}
		}, []string{"python3", "main.py"}},
		"javascript": {"main.mjs", func(t *testing.T, dir string) []string {
			out(t, filepath.Join(root, "typescript"), nil, "sh", "-c", "cmp -s package-lock.json node_modules/.lock || { npm ci --no-audit --no-fund --loglevel=error && cp package-lock.json node_modules/.lock; }; npm run --silent build")
			if err := os.Mkdir(filepath.Join(dir, "node_modules"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(root, "typescript"), filepath.Join(dir, "node_modules", "sluice-client")); err != nil {
				t.Fatal(err)
			}
			return nil
		}, []string{"node", "main.mjs"}},
	} {
		t.Run(language, func(t *testing.T) {
			dir := t.TempDir()
			env := append(s.reader(t), sdk.prepare(t, dir)...)
			said := ""
			programs := examples(t, language)["sdks"]
			for _, x := range programs {
				if err := os.WriteFile(filepath.Join(dir, sdk.file), []byte(x.text), 0o600); err != nil {
					t.Fatal(err)
				}
				said += out(t, dir, env, sdk.program...)
			}
			for _, want := range []string{`^created wh_`, `\nthere are 5\n`, `(?s)\nrefused invalid_request .*secret`, `\nreceived webhook.disabled\n`, `one two three\s*$`} {
				if !regexp.MustCompile(want).MatchString(said) {
					t.Errorf("%d programs: no %q in\n%s", len(programs), want, said)
				}
			}
		})
	}
}

// out runs a program and returns what it prints.
func out(t *testing.T, dir string, env []string, program ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program[0], program[1:]...)
	cmd.Dir, cmd.Env = dir, env
	cmd.Stderr = t.Output()
	b, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", program, err, b)
	}
	return string(b)
}
