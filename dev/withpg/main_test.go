package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheExitStatusIsThatOfTheCommand(t *testing.T) {
	t.Setenv(urlVariable, "postgres://given") // no server is started then
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -KILL $$": 137, `test "$SLUICE_TEST_DATABASE_URL" = postgres://given`: 0} {
		got, err := run([]string{"/bin/sh", "-c", script})
		if err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", script, got, err, want)
		}
	}
	if status, err := run([]string{"/no/such/program"}); err == nil || status != 1 {
		t.Errorf("a program that is not there: %d, %v", status, err)
	}
	if status, err := run(nil); err == nil || status != 2 {
		t.Errorf("no command: %d, %v", status, err)
	}
}

func TestTheCommandFindsAServerThatIsGoneAfterwards(t *testing.T) {
	t.Setenv(urlVariable, "")
	out := filepath.Join(t.TempDir(), "url")
	status, err := run([]string{"/bin/sh", "-c", `psql -qtA "$SLUICE_TEST_DATABASE_URL" -c "SELECT pg_backend_pid() IS NOT NULL, (SELECT usesuper FROM pg_user WHERE usename = current_user), current_setting('data_directory')" > ` + out})
	if err != nil || status != 0 {
		t.Fatalf("status %d, %v", status, err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	data, found := strings.CutPrefix(strings.TrimSpace(string(text)), "t|t|")
	if !found {
		t.Fatalf("psql said %q, want a superuser's connection", text)
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("%s is left behind (%v)", data, err)
	}
}
