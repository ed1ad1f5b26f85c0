package apikeys

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/controlplane/accounts/scoperegistry"
	"sluice.dev/sluice/filters/scopes"
)

// before makes the database what it is after the migration, with keys of before.
func (s Store) before(t *testing.T, db *pgxpool.Pool, n int) (list []Created) {
	t.Helper()
	for range n {
		list = append(list, s.mustCreate(t, account, "streams:read"))
	}
	for _, sql := range []string{`UPDATE chat_scopes SET asked_at = NULL`, `UPDATE api_keys SET chat_before = true`} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// chats reports whether an edge lets a key chat, by its record.
func chats(t *testing.T, db *pgxpool.Pool, c Created) bool {
	t.Helper()
	known, err := scoperegistry.Load(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := atEdge(t, db, c.Text)
	needed, _ := known.Bits(scopes.Grantors("chat:write"))
	return ok && scopes.Decide(r.Scopes, needed, "chat:write").OK()
}

// step makes one and reports whether routes ask now. Whenever they do, no key of before may
// be refused.
func step(t *testing.T, db *pgxpool.Pool, c ChatRollout, former []Created) bool {
	t.Helper()
	done, err := c.Step(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	asked, err := ChatScopesAsked(t.Context(), db)
	if err != nil || asked != done {
		t.Fatal(asked, done, err)
	}
	for _, k := range former {
		if asked && !chats(t, db, k) {
			t.Fatalf("%s of before is refused", k.ID)
		}
	}
	return done
}

func TestKeysOfBeforeChatOnWhileProcessesAreReplaced(t *testing.T) {
	t.Parallel()
	db, s := setup(t)
	former := s.before(t, db, 5)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := db.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	c := ChatRollout{DB: db, Batch: 2, Settle: 1, Notify: "sluice_test"}
	if chats(t, db, former[0]) {
		t.Fatal("the record of before has the scope")
	}
	// A process of before runs beside a new one: it sends what it always sent.
	exec(`INSERT INTO processes (name, kind, build) VALUES ('h/old', 'worker', 'v1')`)
	exec(`INSERT INTO processes (name, kind, build, knows) VALUES ('h/new', 'worker', 'v2', 63)`)
	for range 5 {
		if step(t, db, c, former) || chats(t, db, former[0]) {
			t.Fatal("something was sent while a process of before could undo it")
		}
	}
	// And it makes a key, without the column.
	exec(`INSERT INTO api_keys (id, account_id, name, hash, scopes) VALUES ('key_zzzzzzzzzzzzz', $1, 'late', sha256('late'), '{streams:read}')`, account)
	exec(`DELETE FROM processes WHERE name = 'h/old'`)
	// An edge is behind; another has gone and is remembered.
	exec(`INSERT INTO edges (id, connected, feed_epoch, feed_position) SELECT 'e', true, epoch, head FROM edge_feed`)
	for range 4 { // 2, 2, 2, and that there are no more; a process may be killed between any two
		if step(t, db, c, former) {
			t.Fatal("routes ask while records are sent")
		}
	}
	for _, k := range former {
		if !chats(t, db, k) {
			t.Errorf("the record of %s was not sent", k.ID)
		}
	}
	for range 3 {
		if step(t, db, c, former) {
			t.Fatal("routes ask though an edge lacks the records")
		}
	}
	exec(`UPDATE edges SET feed_position = (SELECT head FROM edge_feed)`)
	exec(`UPDATE edges SET feed_epoch = feed_epoch + 1`)
	if step(t, db, c, former) {
		t.Fatal("routes ask though an edge holds another history")
	}
	exec(`UPDATE edges SET feed_epoch = feed_epoch - 1`)
	for range 2 {
		if !step(t, db, c, former) {
			t.Fatal("routes do not ask, though every edge has the records")
		}
	}
	// What comes now, new and of before.
	if fresh := s.mustCreate(t, account, "streams:read"); chats(t, db, fresh) {
		t.Error("a new key chats without the scope")
	}
	shown, err := s.Get(t.Context(), account, former[1].ID)
	if err != nil || !slices.Equal(shown.Scopes, []string{"streams:read", "chat:read", "chat:write"}) {
		t.Errorf("%v %v", shown.Scopes, err)
	}
	next, err := s.Rotate(t.Context(), account, former[1].ID, DefaultOverlap, []string{"*"})
	if err != nil || !chats(t, db, next) || !chats(t, db, former[1]) {
		t.Errorf("rotated: %v", err)
	}
	exec(`UPDATE accounts SET unpaid = true WHERE id = $1`, account)
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := EmitAccountTx(t.Context(), tx, account); err != nil || tx.Commit(t.Context()) != nil || !chats(t, db, former[2]) {
		t.Errorf("after a change of the account: %v", err)
	}
}

// A fleet that goes back to the release before while records are sent, and forward again,
// has records in which the scopes are missing: all are sent once more.
func TestAProcessOfBeforeComesBack(t *testing.T) {
	t.Parallel()
	db, s := setup(t)
	former := s.before(t, db, 3)
	c := ChatRollout{DB: db, Batch: 1, Settle: 1, Notify: "sluice_test"}
	for sent := range 5 { // three keys, and that there are no more
		for range sent {
			step(t, db, c, nil)
		}
		if _, err := db.Exec(t.Context(), `INSERT INTO processes (name, kind, build) VALUES ('h/old', 'worker', 'v1')`); err != nil {
			t.Fatal(err)
		}
		step(t, db, c, nil)
		tx, err := db.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// It does not know the column.
		for _, sql := range []string{`UPDATE api_keys SET chat_before = false`, `DELETE FROM processes`} {
			if _, err := tx.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		if err := EmitAccountTx(t.Context(), tx, account); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), `UPDATE api_keys SET chat_before = true`); err != nil || tx.Commit(t.Context()) != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		step(t, db, c, nil)
	}
	for _, k := range former {
		if !chats(t, db, k) {
			t.Errorf("the record of %s is as the process of before sent it", k.ID)
		}
	}
}

// The work is bounded: what was sent once is not sent again.
func TestRecordsOfBeforeAreSentOnce(t *testing.T) {
	t.Parallel()
	db, s := setup(t)
	s.before(t, db, 3)
	c := ChatRollout{DB: db, Settle: 1, Notify: "sluice_test"}
	head := func() (n int64) {
		if err := db.QueryRow(t.Context(), `SELECT head FROM edge_feed`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	start := head()
	for range 6 {
		step(t, db, c, nil)
	}
	if n := head() - start; n != 3 {
		t.Errorf("%d records were sent", n)
	}
}

// A fresh installation has no keys of before: routes ask at once.
func TestAFreshInstallationAsksAtOnce(t *testing.T) {
	t.Parallel()
	db, _ := setup(t)
	if asked, err := ChatScopesAsked(t.Context(), db); !asked || err != nil {
		t.Error(asked, err)
	}
}

func TestScopesThatAreNotOfferedAreNotGranted(t *testing.T) {
	t.Parallel()
	db, s := setup(t)
	kept := s.mustCreate(t, account, "events:read")
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := scoperegistry.OfferTx(t.Context(), tx, []string{"*", "streams:*", "streams:read"}); err != nil || tx.Commit(t.Context()) != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), Spec{Account: account, Name: "k", Scopes: []string{"events:read"}, Creator: []string{"*"}}); err == nil {
		t.Error("a scope that opens nothing was granted")
	}
	if _, err := s.Rotate(t.Context(), account, kept.ID, DefaultOverlap, []string{"*"}); err != nil {
		t.Error(err)
	}
}
