package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/workers/schedules/definition"
)

// burst has a part of the active schedules due within one second. An empty url
// makes them emit events instead of calls.
func burst(ctx context.Context, s *stack, o options, name, url string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := s.load(ctx, o.active-o.due, 24*time.Hour, time.Hour, url); err != nil {
		return err
	}
	if err := s.load(ctx, o.due, 3*time.Second, time.Second, url); err != nil {
		return err
	}
	if err := s.work(ctx, o.workers); err != nil {
		return err
	}
	if err := s.settle(ctx, o.due); err != nil {
		return err
	}
	return s.report(ctx, fmt.Sprintf("%s: %d active, %d due in one second", name, o.active, o.due))
}

// steady has calls due at an even rate.
func steady(ctx context.Context, s *stack, o options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := s.work(ctx, o.workers); err != nil {
		return err
	}
	n := o.rate * o.seconds
	if err := s.load(ctx, n, 2*time.Second, time.Duration(o.seconds)*time.Second, s.receiver.URL); err != nil {
		return err
	}
	if err := s.settle(ctx, n); err != nil {
		return err
	}
	return s.report(ctx, fmt.Sprintf("steady: %d calls due a second for %d s", o.rate, o.seconds))
}

// load stores n one-time schedules, due evenly within a span that begins after
// a while.
func (s *stack) load(ctx context.Context, n int, after, span time.Duration, url string) error {
	first := time.Now().Add(after).UTC().Truncate(time.Microsecond)
	base := definition.Definition{Type: definition.TypeCustom, Tags: []string{}, CatchUpPolicy: "last", MaxCatchUp: 10, OverlapPolicy: "skip"}
	if url != "" {
		base.Type, base.Webhook = definition.TypeWebhook, &definition.Webhook{URL: url, Payload: []byte(`{"eventName":"bench"}`)}
	}
	now := time.Now()
	row := func(i int) ([]any, error) {
		at := first.Add(span / time.Duration(n) * time.Duration(i)).Truncate(time.Microsecond)
		d := base
		d.Name = fmt.Sprintf("%s-%d", after, i)
		d.Schedule = definition.Timing{Type: definition.OneTime, Timezone: "UTC", ExecuteAt: at.Format(time.RFC3339Nano)}
		id := fmt.Sprintf("schedule_%d%06d", int(after.Seconds()), i)
		return []any{id, account, d.Name, d.Type, d.Tags, "active", d, at, now, now}, nil
	}
	columns := []string{"id", "account_id", "name", "type", "tags", "status", "definition", "next_fire_at", "created_at", "updated_at"}
	_, err := s.pool.CopyFrom(ctx, pgx.Identifier{"schedules"}, columns, pgx.CopyFromSlice(n, row))
	if err != nil {
		return err
	}
	_, err = s.pool.Exec(ctx, `ANALYZE schedules`)
	return err
}

// settle waits until n executions have ended.
func (s *stack) settle(ctx context.Context, n int) error {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for done := 0; done < n; <-tick.C {
		err := s.pool.QueryRow(ctx, `SELECT count(*) FROM schedule_executions WHERE status IN ('success', 'failed', 'skipped')`).Scan(&done)
		if err != nil {
			return err
		}
	}
	return nil
}

// report prints a row: when the last run was made and when it had ended,
// counted from the first due time, and how late runs were.
func (s *stack) report(ctx context.Context, title string) error {
	var runs, good int
	var fired, ended, fire50, fire99, fireMost, end50, end99, endMost float64
	err := s.pool.QueryRow(ctx, `
		WITH run AS (
			SELECT status, scheduled_for, executed_at, finished_at, extract(epoch FROM executed_at - scheduled_for) * 1000 AS fire,
				extract(epoch FROM finished_at - scheduled_for) * 1000 AS finish
			FROM schedule_executions
		)
		SELECT count(*), count(*) FILTER (WHERE status = 'success'), extract(epoch FROM max(executed_at) - min(scheduled_for)),
			extract(epoch FROM max(finished_at) - min(scheduled_for)),
			percentile_cont(0.5) WITHIN GROUP (ORDER BY fire), percentile_cont(0.99) WITHIN GROUP (ORDER BY fire), max(fire),
			percentile_cont(0.5) WITHIN GROUP (ORDER BY finish), percentile_cont(0.99) WITHIN GROUP (ORDER BY finish), max(finish)
		FROM run`).Scan(&runs, &good, &fired, &ended, &fire50, &fire99, &fireMost, &end50, &end99, &endMost)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d runs, %d succeeded; all fired %.2f s after the first was due, all ended after %.2f s, %.0f a second\n",
		title, runs, good, fired, ended, float64(runs)/ended)
	fmt.Printf("  fired late by p50 %.1f ms, p99 %.1f ms, most %.1f ms; ended p50 %.1f ms, p99 %.1f ms, most %.1f ms after due\n",
		fire50, fire99, fireMost, end50, end99, endMost)
	return nil
}
