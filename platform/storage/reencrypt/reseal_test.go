package reencrypt

import (
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/storage/postgres/pgtest"
	"sluice.dev/sluice/platform/storage/secretbox"
)

var older, newer, stranger = strings.Repeat("a", secretbox.MinKey), strings.Repeat("b", secretbox.MinKey), strings.Repeat("c", secretbox.MinKey)

func box(t *testing.T, keys ...string) *secretbox.Box {
	t.Helper()
	b, err := secretbox.New(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func bound(id string) string { return "row " + id }

// What the old key sealed opens with the new one alone afterwards; what was sealed
// with the new one, or never, is left; what no key opens is counted, and left.
func TestEverythingIsSealedAnew(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	if _, err := db.Exec(t.Context(), `CREATE TABLE kept (id text PRIMARY KEY, secret bytea)`); err != nil {
		t.Fatal(err)
	}
	put := func(id string, sealed []byte) {
		if _, err := db.Exec(t.Context(), `INSERT INTO kept VALUES ($1, $2)`, id, sealed); err != nil {
			t.Fatal(err)
		}
	}
	old := box(t, older)
	for i := range batch + 7 { // more than are done at once
		id := "old " + strings.Repeat("x", i)
		put(id, old.Seal([]byte(id), bound(id)))
	}
	put("new", box(t, newer).Seal([]byte("n"), bound("new")))
	put("plain", []byte{0x30, 1})
	put("lost", box(t, stranger).Seal([]byte("l"), bound("lost")))
	put("none", nil)
	columns := []Column{{Table: "kept", ID: "id", Value: "secret", Row: bound, Plain: func(b []byte) bool { return b[0] == 0x30 }}}
	for round, want := range []Result{{"kept.secret", 2, batch + 7, 1}, {"kept.secret", batch + 9, 0, 1}} {
		got, err := All(t.Context(), db, box(t, newer, older), columns)
		if err != nil || !slices.Equal(got, []Result{want}) {
			t.Fatalf("round %d: %+v %v, want %+v", round, got, err, want)
		}
	}
	rows, err := db.Query(t.Context(), `SELECT id, secret FROM kept WHERE id LIKE 'old %'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	alone := box(t, newer)
	for rows.Next() {
		var id string
		var sealed []byte
		if err := rows.Scan(&id, &sealed); err != nil {
			t.Fatal(err)
		}
		if plain, err := alone.Open(sealed, bound(id)); err != nil || string(plain) != id {
			t.Errorf("%s: %q %v", id, plain, err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestATableThatIsNotThereIsAnError(t *testing.T) {
	t.Parallel()
	if got, err := All(t.Context(), pgtest.Pool(t), box(t, newer), []Column{{Table: "nowhere", ID: "id", Value: "v", Row: bound}}); err == nil {
		t.Error(got)
	}
}
