package keyfeed

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

func record(n uint64) keytable.Record {
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64(nil, n))
	return keytable.Record{Tag: keytable.TagOfKey(sum), Kind: keytable.KindKey, ID: n}
}

func records(from, to uint64) (list []keytable.Record) {
	for n := from; n < to; n++ {
		list = append(list, record(n))
	}
	return list
}

func put(t *testing.T, db postgres.DB, list ...keytable.Record) {
	t.Helper()
	if err := postgres.InTx(t.Context(), db, func(tx pgx.Tx) error { return PutTx(t.Context(), tx, list...) }); err != nil {
		t.Fatal(err)
	}
}

func drop(t *testing.T, db postgres.DB, tags ...keytable.Tag) {
	t.Helper()
	if err := postgres.InTx(t.Context(), db, func(tx pgx.Tx) error { return DeleteTx(t.Context(), tx, tags...) }); err != nil {
		t.Fatal(err)
	}
}

func decode(t *testing.T, p keytable.Page) (list []keytable.Record) {
	t.Helper()
	for b := p.Records; len(b) > 0; b = b[keytable.RecordSize:] {
		r, ok := keytable.Decode(b)
		if !ok {
			t.Fatal("a page with a part of a record")
		}
		list = append(list, r)
	}
	return list
}

// edge is what an edge does with pages, on a map.
type edge struct {
	q     request
	have  map[keytable.Tag]keytable.Record
	ready bool
	log   []keytable.Record // as read from deltas
}

func (e *edge) read(t *testing.T, db postgres.DB, limit int) keytable.Page {
	t.Helper()
	p, _, err := page(t.Context(), db, e.q, limit)
	if err != nil {
		t.Fatal(err)
	}
	e.apply(t, p)
	return p
}

func (e *edge) apply(t *testing.T, p keytable.Page) {
	t.Helper()
	if e.have == nil {
		e.have = map[keytable.Tag]keytable.Record{}
	}
	if p.Snapshot {
		for tag := range e.have {
			if b := tag.Bucket(); b >= p.Lo && b <= p.Hi {
				delete(e.have, tag)
			}
		}
	}
	for _, r := range decode(t, p) {
		if b := r.Tag.Bucket(); p.Snapshot && (b < p.Lo || b > p.Hi) {
			t.Fatalf("a record of bucket %d in a page of %d..%d", b, p.Lo, p.Hi)
		}
		if r.Kind == keytable.KindNone {
			delete(e.have, r.Tag)
		} else {
			e.have[r.Tag] = r
		}
		if !p.Snapshot {
			e.log = append(e.log, r)
		}
	}
	e.q.epoch, e.q.position, e.q.cursor = p.Epoch, p.Position, keytable.Tag{}
	if p.Snapshot && !p.Last {
		e.q.cursor = p.Cursor
	}
	e.ready = e.ready || p.Last && p.Snapshot
}

func TestChangesComeInOrder(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	e := &edge{}
	if p := e.read(t, db, 10); !p.Snapshot || !p.Last || len(p.Records) != 0 || p.Hi != keytable.Buckets-1 {
		t.Fatalf("first page of an empty feed: %+v", p)
	}
	put(t, db, record(1), record(2))
	drop(t, db, record(1).Tag)
	changed := record(2)
	changed.Plan = 9
	put(t, db, changed)
	p := e.read(t, db, 10)
	if p.Snapshot || !p.Last || len(e.log) != 2 || e.log[0] != (keytable.Record{Tag: record(1).Tag}) || e.log[1] != changed {
		t.Fatalf("%+v\n%+v", p, e.log)
	}
	if p := e.read(t, db, 10); len(p.Records) != 0 || p.Position != e.q.position {
		t.Fatalf("nothing changed, yet %+v", p)
	}
}

func TestATagTwiceInOneWriteHasItsLastRecord(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	last := record(1)
	last.Plan = 3
	put(t, db, record(1), record(2), last)
	drop(t, db, record(2).Tag, record(2).Tag)
	e := &edge{}
	e.read(t, db, 10)
	if len(e.have) != 1 || e.have[last.Tag] != last {
		t.Fatalf("%+v", e.have)
	}
}

func TestARecordWithoutKindIsRefused(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	err := postgres.InTx(t.Context(), db, func(tx pgx.Tx) error { return PutTx(t.Context(), tx, keytable.Record{}) })
	if err == nil {
		t.Fatal("a tombstone was put as a record")
	}
}

func TestRollbackLeavesNothing(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	e := &edge{}
	e.read(t, db, 10)
	crash := errors.New("crash")
	err := postgres.InTx(t.Context(), db, func(tx pgx.Tx) error {
		return errors.Join(PutTx(t.Context(), tx, record(1)), crash)
	})
	put(t, db, record(2))
	e.read(t, db, 10)
	if !errors.Is(err, crash) || len(e.log) != 1 || e.log[0] != record(2) {
		t.Fatalf("%v %+v", err, e.log)
	}
}

// While the snapshot is read page by page, records come, change and go.
func TestSnapshotWhileWriting(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	put(t, db, records(0, 3000)...)
	e, rng, pages := &edge{}, rand.New(rand.NewPCG(1, 2)), 0
	for want := uint32(0); !e.ready; pages++ {
		p := e.read(t, db, 100)
		if !p.Snapshot || p.Lo != want {
			t.Fatalf("a page from %d, want %d", p.Lo, want)
		}
		want = p.Hi + 1
		changed := record(rng.Uint64N(3000))
		changed.Plan = uint16(pages)
		put(t, db, changed, record(3000+uint64(pages)))
		drop(t, db, record(rng.Uint64N(3000)).Tag)
	}
	for p := e.read(t, db, 7); !p.Last; {
		p = e.read(t, db, 7)
	}
	sameAsDatabase(t, db, e)
	if pages < 30 {
		t.Fatalf("only %d pages", pages)
	}
}

func sameAsDatabase(t *testing.T, db postgres.DB, e *edge) {
	t.Helper()
	fresh := &edge{}
	fresh.read(t, db, 1<<20)
	if len(fresh.have) != len(e.have) {
		t.Fatalf("%d records, want %d", len(e.have), len(fresh.have))
	}
	for tag, r := range fresh.have {
		if e.have[tag] != r {
			t.Fatalf("record %d: %+v, want %+v", r.ID, e.have[tag], r)
		}
	}
}

// 16 writers commit, roll back and are cut off in the middle; a reader that only
// ever goes forward sees each committed change exactly once, in commit order.
func TestNoChangeIsLostAmongParallelWriters(t *testing.T) {
	t.Parallel()
	const writers, each = 16, 40
	db := pgtest.Pool(t)
	e := &edge{}
	e.read(t, db, 10)
	done := make(chan error, 1)
	go func() {
		g, ctx := errgroup.WithContext(t.Context())
		for w := range uint64(writers) {
			g.Go(func() error { return writeSome(ctx, db, w, each) })
		}
		done <- g.Wait()
	}()
	for writing := true; writing; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			writing = false
		default:
		}
		for p := e.read(t, db, 5); !p.Last; {
			p = e.read(t, db, 5)
		}
	}
	next := map[uint64]uint64{}
	for _, r := range e.log {
		if w := r.ID / 1000; r.ID%1000 != next[w] {
			t.Fatalf("writer %d: change %d came where %d was due", w, r.ID%1000, next[w])
		} else {
			next[w]++
		}
	}
	if len(e.log) != writers*each {
		t.Fatalf("%d changes seen, want %d", len(e.log), writers*each)
	}
}

// writeSome commits changes 0…n-1 of writer w, each in its own transaction,
// with a transaction that is rolled back, or loses its connection, between them.
func writeSome(ctx context.Context, db *pgxpool.Pool, w, n uint64) error {
	lost := errors.New("lost")
	for i := range n {
		err := postgres.InTx(ctx, db, func(tx pgx.Tx) error { return PutTx(ctx, tx, record(w*1000+i)) })
		if err != nil {
			return err
		}
		err = postgres.InTx(ctx, db, func(tx pgx.Tx) error {
			if err := PutTx(ctx, tx, record(1_000_000+w)); err != nil {
				return fmt.Errorf("writer %d: %w", w, err)
			}
			if i%8 == 0 {
				return errors.Join(lost, tx.Conn().Close(ctx))
			}
			return lost
		})
		if !errors.Is(err, lost) {
			return fmt.Errorf("a transaction that was to fail: %w", err)
		}
	}
	return nil
}

func TestPruneKeepsWhatAnEdgeStillNeeds(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	old, current := &edge{}, &edge{}
	put(t, db, record(1), record(2))
	old.read(t, db, 10)
	drop(t, db, record(1).Tag)
	current.read(t, db, 10)
	if n, err := Prune(t.Context(), db, time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Fatalf("a young tombstone was pruned: %d %v", n, err)
	}
	if n, err := Prune(t.Context(), db, time.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Fatalf("%d pruned, %v", n, err)
	}
	if p := current.read(t, db, 10); p.Snapshot {
		t.Fatal("an edge that saw everything reads a snapshot")
	}
	if p := old.read(t, db, 10); !p.Snapshot || len(old.have) != 1 {
		t.Fatalf("an edge that missed a pruned tombstone still has %v", old.have)
	}
}

func TestAnotherHistoryMeansASnapshot(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	put(t, db, record(1))
	e := &edge{}
	e.read(t, db, 10)
	for name, q := range map[string]request{
		"another epoch":                {epoch: e.q.epoch + 1, position: e.q.position},
		"a position that never was":    {epoch: e.q.epoch, position: e.q.position + 1},
		"another epoch, in a snapshot": {epoch: 1, cursor: lastTag(keytable.Buckets - 1)},
	} {
		p, _, err := page(t.Context(), db, q, 10)
		if err != nil || !p.Snapshot || p.Epoch != e.q.epoch || p.Position != e.q.position || p.Lo != 0 || len(p.Records) != keytable.RecordSize {
			t.Errorf("%s: %+v %v", name, p, err)
		}
	}
}

func TestPutSecretWritesOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	e := &edge{}
	e.read(t, db, 10)
	for _, secret := range [][32]byte{{1}, {1}, {2}} {
		if err := PutSecret(t.Context(), db, "identity", secret); err != nil {
			t.Fatal(err)
		}
		e.read(t, db, 10)
	}
	if len(e.log) != 2 || e.log[1].Secret != [32]byte{2} || e.log[1].Tag != keytable.TagOfSecret("identity") {
		t.Fatalf("%+v", e.log)
	}
}

func TestPutValueWritesOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	e := &edge{}
	e.read(t, db, 10)
	held := func() string {
		records := map[keytable.Tag]keytable.Record{}
		for _, r := range e.log {
			records[r.Tag] = r
		}
		value, _, whole := keytable.Join(keytable.TagOfSecret("names"), func(tag keytable.Tag) (keytable.Record, bool) {
			r, ok := records[tag]
			return r, ok && r.Kind != keytable.KindNone
		})
		if !whole {
			return ""
		}
		return string(value)
	}
	long := strings.Repeat("shop,", 20)
	for _, c := range []struct {
		value string
		wrote int
	}{{"", 0}, {"shop", 1}, {"shop", 0}, {long, 4}, {"media", 4}, {"", 1}, {"", 0}} {
		before := len(e.log)
		if err := PutValue(t.Context(), db, "names", []byte(c.value)); err != nil {
			t.Fatal(err)
		}
		e.read(t, db, 10)
		if held() != c.value || len(e.log)-before != c.wrote {
			t.Errorf("%q: edges hold %q after %d records, want %d", c.value, held(), len(e.log)-before, c.wrote)
		}
	}
	if err := PutValue(t.Context(), db, "names", make([]byte, keytable.MaxValue+1)); err == nil {
		t.Error("a value was taken that no edge takes")
	}
}

func TestCutNeverSplitsABucket(t *testing.T) {
	t.Parallel()
	page := func(buckets ...uint32) *keytable.Page {
		p := &keytable.Page{}
		for i, b := range buckets {
			tag := lastTag(b)
			tag[15] = byte(i)
			p.Records = keytable.Record{Tag: tag, Kind: keytable.KindKey}.Append(p.Records)
		}
		return p
	}
	p := page(1, 1, 5, 5)
	if err := cut(p, 3); err != nil || p.Hi != 4 || p.Last || len(p.Records) != 2*keytable.RecordSize || p.Cursor.Bucket() != 4 {
		t.Errorf("%+v %v", p, err)
	}
	if p := page(1, 1, 5); cut(p, 3) != nil || !p.Last || p.Hi != keytable.Buckets-1 {
		t.Errorf("%+v", p)
	}
	if cut(page(7, 7, 7, 7), 3) == nil {
		t.Error("a bucket that no page can hold must be an error, not a loop")
	}
}
