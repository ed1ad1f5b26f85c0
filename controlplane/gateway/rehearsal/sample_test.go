package rehearsal

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/recording"
)

// Of a sample the number that a limit refuses is right within a few percent.
func TestASampleEstimates(t *testing.T) {
	t.Parallel()
	worst := 0.0
	for seed := range uint64(3) {
		b := setup(t)
		rng := rand.New(rand.NewPCG(seed, 5))
		var all, sample []recording.Request
		for i := range 12_000 { // 200 a minute
			r := b.get("/things", "list", time.Hour-time.Duration(i)*300*time.Millisecond)
			all = append(all, r)
			if rng.IntN(8) == 0 {
				sample = append(sample, r)
			}
		}
		limit := []byte(strings.Replace(string(document()), `"per_minute":60`, `"per_minute":600`, 1))
		if d, err := config.ParseJSON(limit); err != nil {
			t.Fatal(err)
		} else if d, _ = d.Expand(config.ProfileGateway); true {
			if _, err := b.Documents.Store.Put(t.Context(), d, "ann", "", config.Any); err != nil {
				t.Fatal(err)
			}
		}
		b.did(t, 1, all...)
		exact := b.tried(t, document())
		if _, err := b.Requests.DB.Exec(t.Context(), `DELETE FROM request_records`); err != nil {
			t.Fatal(err)
		}
		b.did(t, 8, sample...)
		guess := b.tried(t, document())
		if !exact.Record.Complete || guess.Record.Complete || math.Abs(float64(guess.Record.Requests)/12_000-1) > 0.1 {
			t.Errorf("%+v, %+v", exact.Record, guess.Record)
		}
		share := func(r Report) float64 { return float64(r.Refused.Requests) / float64(r.Record.Requests) }
		worst = max(worst, math.Abs(share(guess)-share(exact)))
	}
	t.Logf("the share that is refused is wrong by %.1f %% at worst", 100*worst)
	if worst > 0.05 {
		t.Errorf("the share that is refused is wrong by %.3f", worst)
	}
}

// What a rehearsal costs for each request, of which there are many.
func BenchmarkRehearsal(b *testing.B) {
	s := setup(b)
	var list []recording.Request
	for i := range 100_000 {
		r := s.get(fmt.Sprint("/things/", i%1000), "get", time.Hour-time.Duration(i)*36*time.Millisecond)
		list = append(list, r)
	}
	s.did(b, 1, list...)
	for b.Loop() {
		if r := s.tried(b, document("", `,{"name":"special","path":"/things/7","product":"other"}`)); r.Record.Recorded == 0 {
			b.Fatal(r.Record)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(list)), "ns/request")
}
