package keyfeed

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// sharedData is an edge's store, as Envoy's is.
type sharedData map[uint32][]byte

func (s sharedData) Bucket(n uint32) []byte       { return append([]byte(nil), s[n]...) }
func (s sharedData) SetBucket(n uint32, b []byte) { s[n] = append([]byte(nil), b...) }

func (s sharedData) records() map[keytable.Tag]keytable.Record {
	all := map[keytable.Tag]keytable.Record{}
	for _, b := range s {
		for ; len(b) > 0; b = b[keytable.RecordSize:] {
			r, _ := keytable.Decode(b)
			all[r.Tag] = r
		}
	}
	return all
}

// realEdge reads the feed with the code that runs in Envoy.
type realEdge struct {
	state keytable.State
	data  sharedData
	away  bool
}

func (e *realEdge) step(t *testing.T, db postgres.DB) keytable.Page {
	t.Helper()
	q := request{epoch: e.state.Epoch, position: e.state.Position}
	if e.state.Loading {
		q.cursor = e.state.Cursor
	}
	p, _, err := page(t.Context(), db, q, 40)
	if err != nil {
		t.Fatal(err)
	}
	sent, ok := keytable.ParsePage(p.Append(nil))
	if !ok {
		t.Fatalf("an edge cannot read the page: %+v", p)
	}
	e.state = e.state.Apply(sent, e.data)
	return p
}

// catchUp reads until there is nothing more to fetch.
func (e *realEdge) catchUp(t *testing.T, db postgres.DB) {
	t.Helper()
	for n := 0; ; n++ {
		if p := e.step(t, db); p.Last && !e.state.Loading && !p.Snapshot {
			return
		}
		if n > 1000 {
			t.Fatal("an edge never comes to the end")
		}
	}
}

// Edges come, go away and come back; they crash in the middle of a snapshot and
// lose everything; records are put, changed and deleted, and tombstones pruned,
// at random. Whoever catches up then holds exactly what the model does.
func TestEdgesAgainstAModel(t *testing.T) {
	t.Parallel()
	db, model := pgtest.Pool(t), map[keytable.Tag]keytable.Record{}
	rng := rand.New(rand.NewPCG(7, 9))
	edges := []*realEdge{{data: sharedData{}}, {data: sharedData{}}, {data: sharedData{}}}
	for range 300 {
		switch e := edges[rng.IntN(len(edges))]; rng.IntN(12) {
		case 0:
			e.away = !e.away
		case 1: // a restart: Envoy's memory is gone
			e.state, e.data = keytable.State{}, sharedData{}
		case 2:
			if _, err := Prune(t.Context(), db, time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		case 3, 4:
			if !e.away {
				e.catchUp(t, db)
				same(t, e.data.records(), model)
			}
		case 5, 6, 7:
			if !e.away {
				e.step(t, db) // and not to the end
			}
		default:
			mutate(t, db, rng, model)
		}
	}
	for _, e := range edges {
		e.catchUp(t, db)
		same(t, e.data.records(), model)
	}
}

// mutate puts and deletes some records in one transaction, which one time in
// five is rolled back.
func mutate(t *testing.T, db postgres.DB, rng *rand.Rand, model map[keytable.Tag]keytable.Record) {
	t.Helper()
	var puts []keytable.Record
	var drops []keytable.Tag
	for range 1 + rng.IntN(20) {
		r := record(rng.Uint64N(500))
		r.Limit = rng.Uint32()
		puts = append(puts, r)
	}
	for range rng.IntN(12) {
		drops = append(drops, record(rng.Uint64N(500)).Tag)
	}
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := PutTx(t.Context(), tx, puts...); err != nil {
		t.Fatal(err)
	}
	if err := DeleteTx(t.Context(), tx, drops...); err != nil {
		t.Fatal(err)
	}
	if rng.IntN(5) == 0 {
		rollback(t, tx)
		return
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, r := range puts {
		model[r.Tag] = r
	}
	for _, tag := range drops {
		delete(model, tag)
	}
}

func rollback(t *testing.T, tx pgx.Tx) {
	t.Helper()
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, got, want map[keytable.Tag]keytable.Record) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for tag, r := range want {
		if got[tag] != r {
			t.Fatalf("record %d: %+v, want %+v", r.ID, got[tag], r)
		}
	}
}
