package views_test

import (
	"bytes"
	"context"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"sluice.dev/sluice/media/playback/views"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

func TestViewersAreToldApart(t *testing.T) {
	t.Parallel()
	of := func(addr, agent, name string) views.Viewer {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = addr
		r.Header.Set("User-Agent", agent)
		return views.ViewerOf(r, name)
	}
	base := of("192.0.2.1:1000", "player", "")
	same := []views.Viewer{of("192.0.2.1:2000", "player", "")}
	others := []views.Viewer{of("192.0.2.2:1000", "player", ""), of("192.0.2.1:1000", "browser", ""), of("192.0.2.1:1000", "player", "ann"), of("unix", "player", ""), of("[2001:db8:0:2::1]:1", "player", "")}
	if !bytes.Equal(of("[2001:db8:0:1::1]:1", "player", ""), of("[2001:db8:0:1:ffff::2]:1", "player", "")) {
		t.Error("another address of the same customer is another viewer")
	}
	for _, v := range same {
		if !bytes.Equal(v, base) {
			t.Error("another connection is another viewer")
		}
	}
	for i, v := range others {
		if bytes.Equal(v, base) {
			t.Errorf("%d is the same viewer", i)
		}
	}
	if !bytes.Equal(of("192.0.2.1:1", "a", "ann"), of("192.0.2.9:1", "b", "ann")) {
		t.Error("a named viewer is another one on another device")
	}
}

// Whatever players an address names, it is few viewers.
func TestAnAddressIsFewViewers(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for i := range 5000 {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("User-Agent", "player "+strconv.Itoa(i))
		seen[string(views.ViewerOf(r, ""))] = true
	}
	if len(seen) > 16 {
		t.Errorf("one address is %d viewers", len(seen))
	}
}

// statements counts what a database is asked.
type statements struct {
	postgres.DB
	n int
}

func (s *statements) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	s.n++
	return s.DB.Exec(ctx, sql, args...)
}

func (s *statements) Begin(context.Context) (pgx.Tx, error) { panic("a join needs no transaction") }

// However many watch, one who joins costs one statement, and waits for nobody who
// holds the session.
func TestAJoinCostsTheSameWhoeverElseWatches(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, sql := range []string{
		`INSERT INTO media_sessions (id, owner, stream_id, started_at) VALUES ('sess_1', 'acct_1', 'strm_1', $1)`,
		`INSERT INTO media_views (owner, subject, viewer, hour, first_at, last_at) SELECT 'acct_1', 'strm_1', decode(md5(n::text), 'hex'), $1, $1, $1 FROM generate_series(1, 3000) n`,
	} {
		if _, err := pool.Exec(t.Context(), sql, now); err != nil {
			t.Fatal(err)
		}
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `SELECT FROM media_sessions FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	db := &statements{DB: pool}
	c := views.Counter{DB: db, Now: func() time.Time { return now }}
	for range 2 {
		if err := c.Seen(t.Context(), views.Subject{Owner: "acct_1", ID: "strm_1"}, views.Viewer("one more")); err != nil {
			t.Fatal(err)
		}
	}
	if db.n != 2 {
		t.Errorf("%d statements for two requests", db.n)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.DB = pool
	var peak int
	err = c.Tally(t.Context())
	if serr := pool.QueryRow(t.Context(), `SELECT peak_viewers FROM media_sessions`).Scan(&peak); err != nil || serr != nil || peak != 3001 {
		t.Errorf("%d viewers, %v %v", peak, err, serr)
	}
}
