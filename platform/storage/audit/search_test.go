package audit

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// The log is searched by any of several actors and by times, and what is exported is what is
// found, all of it, once.
func TestSearchingTheLog(t *testing.T) {
	t.Parallel()
	db, n := pgtest.Pool(t), 2*exportAtOnce+5
	_, err := db.Exec(t.Context(), `INSERT INTO audit_log (at, actor, address, request_id, account_id, action, target)
		SELECT now() - make_interval(hours => i), 'sess_' || i % 5, '', '', 'acct_1', CASE i % 2 WHEN 0 THEN 'key.create' ELSE 'key.revoke' END, 'key_' || i FROM generate_series(1, $1) i`, n)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		q    Search
		want int
	}{
		"everything":        {Search{}, n},
		"two actors":        {Search{Actors: []string{"sess_0", "sess_1", "nobody"}}, 2 * n / 5},
		"nobody":            {Search{Actors: []string{}}, 0},
		"an hour ago":       {Search{From: time.Now().Add(-150 * time.Minute)}, 2},
		"a time":            {Search{From: time.Now().Add(-150 * time.Minute), To: time.Now().Add(-90 * time.Minute)}, 1},
		"an action":         {Search{Filter: Filter{Action: "key.create", Account: "acct_1"}}, n / 2},
		"another's":         {Search{Filter: Filter{Account: "acct_2"}}, 0},
		"a target, an hour": {Search{Filter: Filter{Target: "key_1"}, To: time.Now()}, 1},
	} {
		list, total, err := Find(t.Context(), db, c.q, paging.Page{Limit: 10})
		if err != nil || total != c.want || len(list) != min(10, c.want) {
			t.Errorf("%s: %d of %d, want %d: %v", name, len(list), total, c.want, err)
		}
		var targets []string
		more, err := Each(t.Context(), db, c.q, func(list []Entry) error {
			for _, e := range list {
				targets = append(targets, e.Target)
			}
			return nil
		})
		slices.Sort(targets)
		if err != nil || more || len(slices.Compact(targets)) != c.want {
			t.Errorf("%s: %d exported, want %d: %v", name, len(targets), c.want, err)
		}
	}
	if list, err := Actions(t.Context(), db, "acct_1"); err != nil || fmt.Sprint(list) != "[key.create key.revoke]" {
		t.Errorf("%v %v", list, err)
	}
	if list, err := Actions(t.Context(), db, "acct_2"); err != nil || len(list) != 0 {
		t.Errorf("%v %v", list, err)
	}
}
