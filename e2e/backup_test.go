package e2e

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A backup that was taken from a running stack makes another database into the
// same platform: its keys are accepted, a schedule goes on that was due meanwhile,
// and a webhook is signed with its secret.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"SLUICE_WEBHOOK_ALLOW_CIDRS": "127.0.0.1/32"})
	key := s.dev["SLUICE_API_KEY"]
	url, got, _ := receiver(t)
	s.subscribe(t, url, "stream.started")
	made := s.createStream(t, key, "kept")
	plan := s.createSchedule(t, key, "kept", made.ID, "start", soon())
	file := filepath.Join(s.dir, "kept.backup")
	s.wantCommand(t, s.env, 0, "SLUICE_SECRETS_KEY, which is not in it", "backup", file)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info.Mode(), err)
	}
	s.wantCommand(t, s.env, 1, "is there already", "backup", file)
	later := s.createStream(t, key, "after the backup")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}

	fresh := maps.Clone(s.env)
	fresh["SLUICE_DATABASE_URL"] = emptyDatabase(t)
	s.wantCommand(t, fresh, 0, "are back", "restore", file)
	s.wantCommand(t, fresh, 1, "not empty", "restore", file)
	again := startIn(t, s.dir, fresh)
	t.Cleanup(func() {
		if err := again.stop(); err != nil {
			t.Error(err)
		}
	})
	if again.dev["SLUICE_API_KEY"] != key {
		t.Error("the restored stack has another key")
	}
	wantStatus(t, call(t, http.MethodGet, again.url("/v1/streams/"+made.ID), key, nil), http.StatusOK)
	wantStatus(t, call(t, http.MethodGet, again.url("/v1/streams/"+later.ID), key, nil), http.StatusNotFound)
	if done := again.awaitExecution(t, key, plan.ID); done.Status != "success" {
		t.Errorf("%+v", done)
	}
	if body := string(receive(t, got).body); !strings.Contains(body, made.ID) {
		t.Error(body)
	}
	again.wantStatusCommand(t, 0)
}

// wantCommand runs a command and wants an exit status and words of its output.
func (s *stack) wantCommand(t *testing.T, env map[string]string, exit int, words string, args ...string) {
	t.Helper()
	status, out, errs := sluice(t, env, args...)
	if status != exit || !strings.Contains(out+errs, words) {
		t.Fatalf("sluice %v: exit status %d, want %d and %q\n%s%s", args, status, exit, words, out, errs)
	}
}
