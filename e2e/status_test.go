package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// wantStatusCommand runs `sluice status` until its exit status and its output are
// as wanted.
func (s *stack) wantStatusCommand(t *testing.T, exit int, words ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("sluice status exits with %d", exit), func() error {
		got, out, errs := sluice(t, s.env, "status")
		for _, w := range words {
			if !strings.Contains(out, w) {
				return fmt.Errorf("no %q in status %d\n%s%s", w, got, out, errs)
			}
		}
		if got != exit {
			return fmt.Errorf("exit status %d\n%s%s", got, out, errs)
		}
		return nil
	})
}

// exec changes the database behind a stack's back.
func (s *stack) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.dev["SLUICE_DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func (s *stack) tellsItsStatus(t *testing.T) {
	t.Helper()
	s.wantStatusCommand(t, 0, "processes  ok", "1 controlplane, 1 media, 1 runtime, 1 worker", "1 live, 1 of them hold version 1")
	s.exec(t, `INSERT INTO processes (name, kind, build, last_seen) VALUES ('gone/1', 'worker', 'dev', now() - interval '1 minute')`)
	s.wantStatusCommand(t, 1, "processes  LOOK", "worker gone/1 was last heard of 1m", "Start it again")
	status, out, _ := sluice(t, s.env, "status", "--output", "json")
	if v := intoText[struct{ Status string }](t, out); status != 1 || v.Status != "problems" {
		t.Errorf("exit status %d\n%s", status, out)
	}
	s.exec(t, `DELETE FROM processes WHERE name = 'gone/1'`)
}
