package jobs

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/accounts/oauth"
	"sluice.dev/sluice/controlplane/accounts/seed"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

func TestHousekeepingDropsWhatIsOld(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	service := func(now func() time.Time) *sessions.Service {
		return sessions.New(sessions.Config{DB: db, Issuer: "i", Audience: "a", Now: now})
	}
	if _, err := seed.Local(t.Context(), db, seed.Config{Sessions: service(time.Now)}); err != nil {
		t.Fatal(err)
	}
	round := func(days int) map[string]int {
		now := func() time.Time { return time.Now().AddDate(0, 0, days) }
		return Housekeeping{DB: db, Sessions: service(now), Apps: apps(db, service(now)), Now: now}.Round(t.Context())
	}
	for _, c := range []struct {
		days int
		want map[string]int
	}{
		{0, map[string]int{"overdue": 0, "tombstones": 0, "keys": 0, "answers": 0, "grants": 0, "sessions": 0}},
		{2, map[string]int{"overdue": 0, "tombstones": 0, "keys": 0, "answers": 0, "grants": 0, "sessions": 1}},
		{3690, map[string]int{"overdue": 0, "tombstones": 0, "keys": 2, "answers": 0, "grants": 0, "sessions": 0}},
		{3690, map[string]int{"overdue": 0, "tombstones": 2, "keys": 0, "answers": 0, "grants": 0, "sessions": 0}},
	} {
		got := round(c.days)
		if added := got["signing keys added"]; (added == 1) != (c.days > 30 && c.want["keys"] > 0) {
			t.Errorf("after %d days: %d signing keys were added", c.days, added)
		}
		if delete(got, "signing keys added"); !maps.Equal(got, c.want) {
			t.Errorf("after %d days: %v, want %v", c.days, got, c.want)
		}
	}
	var left int
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM edge_records WHERE record IS NULL`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d tombstones are left, %v", left, err)
	}
}

// The database is gone: every round fails, and Run ends with its context all the same.
func apps(db postgres.DB, s *sessions.Service) *oauth.Service {
	return oauth.New(oauth.Config{DB: db, Sessions: s, Issuer: "i", Audience: "a"})
}

func TestHousekeepingOutlivesTheDatabase(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	s := sessions.New(sessions.Config{DB: db, Issuer: "i", Audience: "a"})
	db.Close()
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan struct{}, 1)
	log := slog.New(slog.NewTextHandler(writerFunc(func(b []byte) (int, error) {
		select {
		case failed <- struct{}{}:
		default:
		}
		return io.Discard.Write(b)
	}), nil))
	done := make(chan struct{})
	go func() {
		defer close(done)
		Housekeeping{DB: db, Sessions: s, Apps: apps(db, s), Every: time.Millisecond, Log: log}.Run(ctx)
	}()
	for range 3 {
		<-failed
	}
	cancel()
	<-done
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
