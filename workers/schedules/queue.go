package schedules

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
)

// Queue is the name of the queue that executions go through.
const Queue = "schedules"

// The priorities of jobs: those of a lower number are taken first.
const (
	First  = 1 // the first runs of an account that are due at a time
	Second = 2 // further runs of the same account, and triggers behind other triggers
	Behind = 3 // retries, and runs of an account that has its share under way
)

// firstRuns is how many runs of one account go First, of those that one claim has
// made or that were triggered and have not ended.
const firstRuns = 20

// Jobs puts jobs into the queue inside a transaction. *river.Client has it.
type Jobs interface {
	InsertManyFastTx(ctx context.Context, tx pgx.Tx, params []river.InsertManyParams) (int, error)
}

// ExecutionArgs asks for the next attempt of an execution.
type ExecutionArgs struct {
	Execution string `json:"execution"`
	// Account lets a worker see whose it is without asking the database. Empty: made
	// by a release that did not say.
	Account string `json:"account,omitempty"`
}

// Kind names the job in the queue.
func (ExecutionArgs) Kind() string { return "schedule_execution" }

// Turns says which executions have to wait, in a process that carries them out.
type Turns interface {
	// Behind returns the accounts that have more executions than are carried out at
	// once.
	Behind() []string
	// Turn returns how long a new execution of account has to wait for its turn, which
	// it takes; 0: its job is to find out.
	Turn(account string) time.Duration
}

// started is an execution that gets a job.
type started struct {
	id, account string
	priority    int // 0: First
	wait        time.Duration
}

// enqueue gives each execution a job, in the caller's transaction.
func (s *Service) enqueue(ctx context.Context, tx pgx.Tx, executions []started) error {
	if len(executions) == 0 {
		return nil
	}
	jobs := make([]river.InsertManyParams, len(executions))
	for i, e := range executions {
		o := &river.InsertOpts{Queue: Queue, Priority: e.priority}
		if e.wait > 0 {
			o.Priority, o.ScheduledAt = Behind, time.Now().Add(e.wait)
		}
		jobs[i] = river.InsertManyParams{Args: ExecutionArgs{e.id, e.account}, InsertOpts: o}
	}
	_, err := s.Jobs.InsertManyFastTx(ctx, tx, jobs)
	return err
}

// scanStarted reads an execution's id and its account.
func scanStarted(row pgx.CollectableRow) (e started, err error) {
	err = row.Scan(&e.id, &e.account)
	return e, err
}

// ranked gives the executions that one claim has made their priorities: many of
// one account do not keep others from being first.
func ranked(all []started) []started {
	seen := map[string]int{}
	for i := range all {
		all[i].priority = First
		if seen[all[i].account]++; seen[all[i].account] > firstRuns {
			all[i].priority = Second
		}
	}
	return all
}

// postponed is a job that a worker puts off.
type postponed struct {
	job       int64
	execution string
	until     time.Time
}

// Postpone puts the job of an execution, which the caller is working on and must
// snooze, behind those of others, and keeps the execution from being taken for lost
// until then. Calls that come together share a statement.
func (s *Service) Postpone(ctx context.Context, job int64, execution string, until time.Time) error {
	if _, err := s.postpones.Call(ctx, postponed{job, execution, until}); err != nil {
		return fmt.Errorf("postpone execution %s: %w", execution, err)
	}
	return nil
}

// postponeAll is Postpone for several jobs. Their executions share the longest of
// their leases, so that the statement can find each by its id, without a join.
func (s *Service) postponeAll(ctx context.Context, all []postponed) ([]struct{}, error) {
	jobs, ids, lease := make([]int64, len(all)), make([]string, len(all)), time.Time{}
	for i, p := range all {
		jobs[i], ids[i] = p.job, p.execution
		if until := p.until.Add(pickup); until.After(lease) {
			lease = until
		}
	}
	_, err := s.DB.Exec(ctx, `
		WITH job AS (UPDATE river_job SET priority = $1 WHERE id = ANY ($2) AND state = 'running')
		UPDATE schedule_executions SET lease_until = greatest(lease_until, $4)
		WHERE id = ANY ($3) AND status = 'executing' AND NOT running`,
		Behind, jobs, ids, lease)
	return make([]struct{}, len(all)), err
}
