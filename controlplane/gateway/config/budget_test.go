package config

import (
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// budgets are the stored ones, by plan; 0 is none.
func budgets(t *testing.T, pool *pgxpool.Pool) map[string]TokenBudget {
	t.Helper()
	rows, _ := pool.Query(t.Context(), `SELECT plan, coalesce(daily, 0), coalesce(monthly, 0) FROM token_budgets`)
	all := map[string]TokenBudget{}
	var plan string
	var b TokenBudget
	if _, err := pgx.ForEachRow(rows, []any{&plan, &b.Daily, &b.Monthly}, func() error { all[plan] = b; return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTokenBudgetsAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := Store{DB: pool}
	for _, c := range []struct {
		what  string
		plans []Plan
		want  map[string]TokenBudget
	}{
		{"none is said", []Plan{{Name: "free"}}, map[string]TokenBudget{}},
		{"a new plan, and half a budget", []Plan{{Name: "free", Tokens: &TokenBudget{Daily: 5}}, {Name: "gold", Tokens: &TokenBudget{Daily: 7, Monthly: 70}}},
			map[string]TokenBudget{"free": {Daily: 5}, "gold": {Daily: 7, Monthly: 70}}},
		{"one is raised, one taken away", []Plan{{Name: "free", Tokens: &TokenBudget{Daily: 6}}, {Name: "gold", Tokens: &TokenBudget{}}},
			map[string]TokenBudget{"free": {Daily: 6}}},
	} {
		d := small()
		d.Plans = c.plans
		putDoc(t, s, d, "a", Any)
		if got := budgets(t, pool); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}
