package jobs

import (
	"log/slog"
	"maps"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/accounts/usage"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/limits/meter"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

func TestMeteringSumsUpJudgesAndDrops(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	now := time.Now().UTC().Truncate(time.Hour)
	m := Metering{Store: usage.Store{DB: db, Now: func() time.Time { return now }}, Log: slog.New(slog.DiscardHandler)}
	account := keytable.FormatID(keytable.AccountPrefix, 1)
	for _, sql := range []string{
		`INSERT INTO accounts (id, name, plan) VALUES ('` + account + `', 'a', 'free')`,
		`INSERT INTO request_quotas (plan, monthly) VALUES ('free', 1)`,
	} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	c := meter.Counts{Requests: 1}
	c.Latency[0] = 1
	_, err := m.Store.Take(t.Context(), meter.Parcel{Edge: "e", Boot: "b", Sequence: 1},
		[]meter.Batch{{At: now.Unix(), Counts: []meter.Count{{Account: 1, Counts: c}}}})
	if err != nil {
		t.Fatal(err)
	}
	m.Round(t.Context()) // hours of the days before
	for _, step := range []struct {
		days int
		want map[string]int
	}{
		{0, map[string]int{"summed up": 0, "quotas changed": 0, "warned": 0, "dropped": 0}},
		{40, map[string]int{"summed up": 40*24 + 40, "quotas changed": 1, "warned": 0, "dropped": 2}}, // the minute, and the source
		{60, map[string]int{"summed up": 60*24 + 60, "quotas changed": 0, "warned": 0, "dropped": 1}}, // the hour
	} {
		now = now.AddDate(0, 0, step.days)
		if got := m.Round(t.Context()); !maps.Equal(got, step.want) {
			t.Errorf("after %d days more: %v, want %v", step.days, got, step.want)
		}
	}
}
