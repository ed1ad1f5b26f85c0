//go:build clients

package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// checked are the rules that every answer is held to.
const checked = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance"

// lockedOut are operations that would take the caller's own access away, and with
// it what the other calls are to find.
const lockedOut = "allowlist|^/v1/auth/sessions/current|^/oauth/sign-out"

// Both APIs, through the real gateway, answer what their documents say to whatever
// may be sent, and to what may not.
func TestSchemathesis(t *testing.T) {
	dir := installed(t, "schemathesis", "requirements.txt", []string{"sh", "-c", "python3 -m venv venv && venv/bin/pip install -q -r requirements.txt"})
	examples := os.Getenv("EXAMPLES")
	if examples == "" {
		examples = "10"
	}
	for _, run := range []struct {
		name, base, document, credential string
		extra                            []string
	}{
		{"public with a key", "SLUICE_GATEWAY_URL", "/openapi.json", "SLUICE_API_KEY", nil},
		{"public with a session", "SLUICE_GATEWAY_URL", "/openapi.json", "SLUICE_SESSION_TOKEN", []string{"--include-path-regex", "^/v1/(auth|users|billing)|^/oauth"}},
		{"admin", "SLUICE_ADMIN_URL", "/admin/v1/openapi.json", "SLUICE_ADMIN_KEY", nil},
	} {
		t.Run(run.name, func(t *testing.T) {
			s := own(t, nil) // each run changes keys or routes that another one needs
			base, credential := s.dev[run.base], s.dev[run.credential]
			document := filepath.Join(t.TempDir(), "openapi.json")
			r := call(t, http.MethodGet, base+run.document, credential, nil)
			wantStatus(t, r, http.StatusOK)
			if err := os.WriteFile(document, []byte(r.body), 0o600); err != nil {
				t.Fatal(err)
			}
			args := append([]string{"--config-file", "schemathesis.toml", "run", document, "--url", base, "--header", "Authorization: Bearer " + credential,
				"--checks", checked, "--phases", "examples,coverage,fuzzing,stateful", "--max-examples", examples, "--continue-on-failure", "--no-shrink", "--no-color",
				"--exclude-path-regex", lockedOut, "--warnings", "off"}, run.extra...)
			cmd := exec.Command(filepath.Join(dir, "venv", "bin", "schemathesis"), args...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PYTHONPATH="+dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
