package budget

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// hanging is a database that answers when it is told to, and then fails.
type hanging struct {
	postgres.DB
	asked, answer chan struct{}
}

func (h hanging) QueryRow(context.Context, string, ...any) pgx.Row {
	h.asked <- struct{}{}
	<-h.answer
	return failed{}
}

type failed struct{}

func (failed) Scan(...any) error { return errors.New("away") }

func TestScopesAreAskedAsTheDatabaseSays(t *testing.T) {
	t.Parallel()
	pool, now := pgtest.Pool(t), time.Now()
	s := &ScopesAsked{DB: pool, Now: func() time.Time { return now }}
	want := func(asked bool, sql string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
		if before := s.asked; s.known && s.Get(t.Context()) != before {
			t.Error("it is read twice in a second")
		}
		now = now.Add(planAge)
		if s.Get(t.Context()) != asked {
			t.Errorf("%s: %v", sql, !asked)
		}
	}
	want(false, `INSERT INTO scopes (name, bit) VALUES ('chat:write', 100) ON CONFLICT DO NOTHING; UPDATE chat_scopes SET asked_at = NULL`)
	want(true, `UPDATE chat_scopes SET asked_at = now()`)
	want(false, `UPDATE scopes SET offered = false WHERE name = 'chat:write'`)
}

// While the database hangs, one request waits for it and the others go on with the last answer.
func TestASlowDatabaseHoldsNoCallers(t *testing.T) {
	t.Parallel()
	db, now := hanging{asked: make(chan struct{}), answer: make(chan struct{})}, time.Now()
	s := &ScopesAsked{DB: db, Now: func() time.Time { return now }, known: true}
	done := make(chan bool)
	go func() { done <- s.Get(context.Background()) }()
	<-db.asked
	for range 100 { // each of them would wait, or ask
		if s.Get(t.Context()) {
			t.Error("the last answer does not hold")
		}
	}
	close(db.answer)
	if <-done || s.Get(t.Context()) {
		t.Error("it does not hold once the database is away")
	}
	fresh := &ScopesAsked{DB: db}
	go func() { done <- fresh.Get(context.Background()) }()
	<-db.asked
	if !<-done {
		t.Error("nobody knows, and no scope is asked for")
	}
}
