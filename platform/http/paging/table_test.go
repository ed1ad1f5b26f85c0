package paging_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// listed is things as the database has them.
func listed() paging.Table[thing] {
	t := things
	t.Columns, t.Scan = "id, name, created_at", pgx.RowToStructByPos[thing]
	return t
}

// fill makes things, of which many share a time or a name.
func fill(t *testing.T, count int) *pgxpool.Pool {
	t.Helper()
	db := pgtest.Pool(t)
	if _, err := db.Exec(t.Context(), `CREATE TABLE things (id text PRIMARY KEY, name text NOT NULL, created_at timestamptz NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	for i := range count {
		add(t, db, fmt.Sprintf("thing_%03d", i), []string{"Ärger", "ärger", "zoo", "Zoo", "a_b", "a%b", "100%"}[i%7], i/3)
	}
	return db
}

func add(t *testing.T, db *pgxpool.Pool, id, name string, seconds int) {
	t.Helper()
	_, err := db.Exec(t.Context(), `INSERT INTO things VALUES ($1, $2, $3::timestamptz + $4 * interval '1 second')`, id, name, day, seconds)
	if err != nil {
		t.Fatal(err)
	}
}

// walk reads a list to its end, by cursors, and calls between before each page but the first.
func walk(t *testing.T, db *pgxpool.Pool, query string, between func(page int)) (ids []string) {
	t.Helper()
	q, _ := url.ParseQuery(query)
	for page := range 100 {
		p, details := listed().Parse(q)
		if details != nil {
			t.Fatal(details)
		}
		l, err := listed().Read(t.Context(), db, p, `name <> $1`, "hidden")
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range l.Data {
			ids = append(ids, row.ID)
		}
		if l.Pagination.HasMore != (l.Pagination.NextCursor != nil) || len(l.Data) > p.Limit {
			t.Fatalf("%s: %+v", query, l.Pagination)
		}
		if !l.Pagination.HasMore {
			return ids
		}
		q.Set("cursor", *l.Pagination.NextCursor)
		between(page)
	}
	t.Fatal("it does not end")
	return nil
}

// In every order, each row that was there stands on one page, and on one only, whatever comes
// and goes meanwhile.
func TestPagesHoldEachRowOnce(t *testing.T) {
	t.Parallel()
	db := fill(t, 50)
	n := 0
	for _, sort := range []string{"", "created_at", "-created_at", "name", "-name"} {
		n++
		found := walk(t, db, "limit=7&sort="+sort, func(page int) {
			add(t, db, fmt.Sprintf("thing_%03d_%d_%d", page, n, page), "middle", page)
			add(t, db, fmt.Sprintf("new_%d_%d", n, page), "zzz", 1000+page)
			add(t, db, fmt.Sprintf("old_%d_%d", n, page), "", -1000-page)
		})
		old := slices.DeleteFunc(slices.Clone(found), func(id string) bool { return len(id) != len("thing_000") })
		slices.Sort(old)
		if len(slices.Compact(old)) != 50 {
			t.Errorf("sort=%s: %d of 50 rows", sort, len(old))
		}
		slices.Sort(found)
		if len(slices.Compact(slices.Clone(found))) != len(found) {
			t.Errorf("sort=%s: a row came twice", sort)
		}
	}
}

// The row with which a page ends may go before the next page is read.
func TestPagesGoOnBehindARowThatIsGone(t *testing.T) {
	t.Parallel()
	db := fill(t, 10)
	last := ""
	found := walk(t, db, "limit=1&sort=name", func(int) {
		err := db.QueryRow(t.Context(), `DELETE FROM things WHERE id = (SELECT id FROM things ORDER BY lower(name) COLLATE "C", id LIMIT 1) RETURNING id`).Scan(&last)
		if err != nil {
			t.Fatal(err)
		}
	})
	if len(found) != 10 || last == "" {
		t.Errorf("%v", found)
	}
}

func TestListsAreNarrowed(t *testing.T) {
	t.Parallel()
	db := fill(t, 42)
	for query, want := range map[string]int{
		"":                                    42,
		"name=ärg":                            12, // whatever the case, where the database's locale knows it
		"name=ZOO":                            12,
		"name=a%25":                           6, // signs stand for themselves
		"name=a_":                             6,
		"name=hidden":                         0,
		"created_after=2026-11-21T00:00:10Z":  12,
		"created_before=2026-11-21T00:00:10Z": 30,
		"created_after=2026-11-21T00:00:01Z&created_before=2026-11-21T00:00:02Z": 3,
	} {
		q, _ := url.ParseQuery(query)
		p, details := listed().Parse(q)
		l, err := listed().Read(t.Context(), db, p, `name <> $1`, "hidden")
		if err != nil || details != nil || *l.Pagination.Total != want || len(l.Data) != min(want, 50) {
			t.Errorf("%s: %v %v, %d in %+v, want %d", query, err, details, len(l.Data), l.Pagination, want)
		}
	}
}
