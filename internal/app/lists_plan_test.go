package app

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/media/assets"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
	"sluice.dev/sluice/workers/schedules"
)

// statement is what a list asks the database for a page.
type statement func(p paging.Page, where string, args ...any) (string, []any)

// Pages of lists that may be long are found by an index, which gives them in order: nothing is
// sorted but rows of the same time.
func TestLongListsAreReadByAnIndex(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at, name := paging.Place{Value: "1795219200123456", ID: "1"}, paging.Place{Value: "n", ID: "1"}
	byTime := []paging.Page{{Limit: 50}, {Limit: 50, After: at}, {Limit: 50, From: day, To: day.AddDate(0, 1, 0)}}
	byName := func(sort string) []paging.Page {
		return []paging.Page{{Limit: 50, Sort: sort}, {Limit: 50, Sort: "-" + sort, After: name}, {Limit: 50, Sort: sort, Name: "a"}}
	}
	for list, c := range map[string]struct {
		of    statement
		where string
		args  []any
		pages []paging.Page
	}{
		"accounts":             {accounts.List.Statement, `true`, nil, append(byName("name"), byTime...)},
		"keys":                 {apikeys.List.Statement, `k.account_id = $1 AND k.revoked_at IS NULL`, []any{"a"}, append(byName("name"), byTime...)},
		"audit":                {audit.Table.Statement, `true`, nil, byTime},
		"audit of an account":  {audit.Table.Statement, `account_id = $1`, []any{"a"}, byTime},
		"streams":              {streams.List.Statement, `owner = $1`, []any{"a"}, append(byName("title"), byTime...)},
		"videos":               {assets.List.Statement, `owner = $1 AND kind = $2`, []any{"a", "vod"}, append(byName("title"), byTime...)},
		"schedules":            {schedules.Schedules.Statement, `account_id = $1`, []any{"a"}, byTime},
		"executions":           {schedules.Executions.Statement, `schedule_id = $1`, []any{"a"}, byTime[:2]},
		"events of an account": {schedules.Events.Statement, `account_id = $1`, []any{"a"}, byTime},
	} {
		for _, p := range c.pages {
			tx, err := db.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), `SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off`); err != nil {
				t.Fatal(err)
			}
			sql, args := c.of(p, c.where, c.args...)
			rows, err := tx.Query(t.Context(), `EXPLAIN `+sql, args...)
			if err != nil {
				t.Fatal(list, err)
			}
			plan := ""
			for rows.Next() {
				var line string
				if err := rows.Scan(&line); err != nil {
					t.Fatal(err)
				}
				plan += line + "\n"
			}
			if rows.Err() != nil || !strings.Contains(plan, "Index ") || strings.Contains(plan, "Seq Scan") || strings.Contains(plan, "Sort Key") && !strings.Contains(plan, "Presorted Key") {
				t.Errorf("%s, %+v: %v\n%s\n%s", list, p, rows.Err(), sql, plan)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}
