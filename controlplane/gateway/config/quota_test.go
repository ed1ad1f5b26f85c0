package config

import (
	"maps"
	"testing"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

func TestQuotasAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	for _, c := range []struct {
		what  string
		plans []Plan
		want  map[string]int64
	}{
		{"none is said", []Plan{{Name: "free"}, {Name: "pro", Quota: &Quota{}}}, map[string]int64{}},
		{"two, one of a new plan", []Plan{{Name: "free", Quota: &Quota{Requests: 5}}, {Name: "gold", Quota: &Quota{Requests: 7}}},
			map[string]int64{"free": 5, "gold": 7}},
		{"one is raised, one taken away", []Plan{{Name: "free", Quota: &Quota{Requests: 6}}, {Name: "gold"}}, map[string]int64{"free": 6}},
	} {
		d := small()
		d.Plans = c.plans
		putDoc(t, Store{DB: pool}, d, "a", Any)
		rows, _ := pool.Query(t.Context(), `SELECT plan, monthly FROM request_quotas`)
		got := map[string]int64{}
		var plan string
		var monthly int64
		if _, err := pgx.ForEachRow(rows, []any{&plan, &monthly}, func() error { got[plan] = monthly; return nil }); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}
