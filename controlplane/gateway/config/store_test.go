package config

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

func putDoc(t *testing.T, s Store, d Document, author string, ifMatch int64) Version {
	t.Helper()
	v, err := s.Put(t.Context(), d, author, "", ifMatch)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func wantCode(t *testing.T, err error, code decision.Code) {
	t.Helper()
	if apierror.Code(err) != code {
		t.Errorf("error %v, want code %s", err, code)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	s := Store{DB: pgtest.Pool(t)}
	_, err := s.Latest(t.Context())
	wantCode(t, err, decision.NotFound)
	one := putDoc(t, s, small(), "a", 0)
	if again := putDoc(t, s, small(), "b", Any); again.Number != one.Number || again.Author != "a" {
		t.Errorf("the same document is another version: %+v", again)
	}
	d := small()
	d.AccessLog = "all"
	two := putDoc(t, s, d, "b", one.Number)
	if two.Number <= one.Number {
		t.Errorf("%d comes after %d", two.Number, one.Number)
	}
	_, err = s.Put(t.Context(), small(), "c", "", one.Number)
	wantCode(t, err, decision.Precondition)
	v, err := s.Latest(t.Context())
	if err != nil || v.Number != two.Number || v.Author != "b" || len(Diff(v.Document, d)) != 0 {
		t.Errorf("%+v, %v", v, err)
	}
}

// The database writes JSON in its own way, which is no change of a document: not of
// what requests must be either.
func TestSchemasAreAsTheyWereStored(t *testing.T) {
	t.Parallel()
	s := Store{DB: pgtest.Pool(t)}
	d := small()
	schema := JSONSchema("")
	if err := schema.UnmarshalJSON([]byte(`{"properties":{"b":{"minimum":1e2,"multipleOf":0.010},"aa":{"const":1E+30},"é":{"enum":["<&>",1e-7,12345678901234567890123]}},"type":"object"}`)); err != nil {
		t.Fatal(err)
	}
	d.Products[0].Schemas = map[string]JSONSchema{"Long": schema, "A": "true"}
	one := putDoc(t, s, d, "a", 0)
	v, err := s.Latest(t.Context())
	if err != nil || !v.Document.Equal(d) || len(Diff(v.Document, d)) != 0 || v.Document.Products[0].Schemas["Long"] != schema {
		t.Errorf("%v\n%s\n%s", err, v.Document.Products[0].Schemas["Long"], schema)
	}
	if again := putDoc(t, s, d, "b", Any); again.Number != one.Number {
		t.Error("the same document is another version")
	}
}

func TestWritersOfTheSameVersionDoNotOverwriteEachOther(t *testing.T) {
	t.Parallel()
	s := Store{DB: pgtest.Pool(t)}
	base := putDoc(t, s, small(), "a", 0)
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for i := range cap(errs) {
		wg.Go(func() {
			d := small()
			d.AnonymousPerMinute = uint32(i + 1)
			_, err := s.Put(context.Background(), d, "w", "", base.Number)
			errs <- err
		})
	}
	wg.Wait()
	close(errs)
	won := 0
	for err := range errs {
		if err == nil {
			won++
		} else {
			wantCode(t, err, decision.Precondition)
		}
	}
	if won != 1 {
		t.Errorf("%d writers won", won)
	}
}

func TestNewVersionIsAnnounced(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	conn := listen(t, pool)
	v := putDoc(t, Store{DB: pool}, small(), "a", 0)
	n, err := conn.Conn().WaitForNotification(t.Context())
	if err != nil || n.Channel != Channel || n.Payload != "1" || v.Number != 1 {
		t.Errorf("%+v %v", n, err)
	}
}

func listen(t *testing.T, pool *pgxpool.Pool) *pgxpool.Conn {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Release)
	if _, err := conn.Exec(t.Context(), "LISTEN "+Channel); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestDefaultsGiveWayToPeople(t *testing.T) {
	t.Parallel()
	s := Store{DB: pgtest.Pool(t)}
	latest := func() Version {
		v, err := s.Latest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	initialise := func(log string) {
		d := small()
		d.AccessLog = log
		if err := s.Init(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	initialise("all")
	initialise("off") // a later release
	if v := latest(); v.Author != DefaultAuthor || v.Document.AccessLog != "off" {
		t.Errorf("%+v", v)
	}
	putDoc(t, s, small(), "somebody", Any)
	initialise("all")
	if v := latest(); v.Author != "somebody" {
		t.Errorf("a default replaced what %s put", v.Author)
	}
}

func TestPlanInUseCannotGo(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	if _, err := pool.Exec(t.Context(), `INSERT INTO accounts (id, name, plan) VALUES ('acct_0123456789abc', 'a', 'pro')`); err != nil {
		t.Fatal(err)
	}
	_, err := Store{DB: pool}.Put(t.Context(), small(), "a", "", Any)
	if e, ok := errors.AsType[*apierror.Error](err); !ok || len(e.Details) != 1 || e.Details[0].Field != "plans" {
		t.Errorf("%v", err)
	}
}

func TestNumbersStay(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	d := small()
	first, err := EnsureNumbers(t.Context(), pool, d)
	if err != nil {
		t.Fatal(err)
	}
	d.Scopes = append([]string{"archive:read"}, d.Scopes...)
	d.Plans = append([]Plan{{Name: "bronze"}}, d.Plans...)
	second, err := EnsureNumbers(t.Context(), pool, d)
	if err != nil {
		t.Fatal(err)
	}
	for name, bit := range first.Scopes {
		if second.Scopes[name] != bit {
			t.Errorf("%s had bit %d and has %d", name, bit, second.Scopes[name])
		}
	}
	if second.Plans["free"] != first.Plans["free"] || second.Plans["bronze"] == 0 {
		t.Errorf("%v, then %v", first.Plans, second.Plans)
	}
	if _, err := d.Policy(1, "", second); err != nil {
		t.Error(err)
	}
}
