package apikeys

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts/scoperegistry"
	"sluice.dev/sluice/controlplane/edgesync/keyfeed"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/storage/postgres"
)

// ChatScopes are the scopes that chat and lists of models ask for since the migration
// chatMigration. Keys of before have them.
var ChatScopes = []string{"chat:read", "chat:write"}

const chatMigration = 63

// withChat returns names, with those of ChatScopes that they do not cover for a key that was
// made before chat asked for any.
func withChat(names []string, before bool) []string {
	if !before {
		return names
	}
	all := slices.Clone(names)
	for _, s := range ChatScopes {
		if !scopes.Covers(names, s) {
			all = append(all, s)
		}
	}
	return all
}

// ChatRollout has routes ask for ChatScopes once every edge has the records of keys that were
// made before, with those scopes in them. The invariant is that at no edge a route asks for
// a scope while the record of a key of before lacks it:
//
//   - Nothing is sent while a process of before runs: it would send records without. Where
//     one comes back before routes ask, all records are sent once more when it has gone.
//   - Then all records are sent again, some at a time. Where a process was killed
//     the next one goes on, from chat_scopes.sent_to.
//   - Routes ask when every edge of which anything is known has come to the position
//     of the feed at which all were sent.
type ChatRollout struct {
	DB    postgres.DB
	Batch int           // keys in a transaction; 0: 500
	Every time.Duration // between two batches, and two looks at the edges; 0: 2 s
	// Settle is how long processes and edges have to say that they are there, after the
	// database was started and after the last record was sent; 0: 1 min.
	Settle time.Duration
	// Notify is the channel on which it is announced that routes ask now.
	Notify string
}

// Run goes on until routes ask for the scopes, or ctx ends. Several may run at once.
func (c ChatRollout) Run(ctx context.Context) {
	every := c.Every
	if every == 0 {
		every = 2 * time.Second
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		done, err := c.Step(ctx)
		if done || ctx.Err() != nil {
			return
		}
		if err != nil {
			slog.WarnContext(ctx, "routes do not ask for the scopes of chat yet", "cause", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Step does what comes next, in one transaction, and reports whether routes ask.
func (c ChatRollout) Step(ctx context.Context) (done bool, err error) {
	err = postgres.InTx(ctx, c.DB, func(tx pgx.Tx) error {
		var after string
		var sent bool
		err := tx.QueryRow(ctx, `SELECT asked_at IS NOT NULL, sent_at IS NOT NULL, sent_to FROM chat_scopes FOR UPDATE`).Scan(&done, &sent, &after)
		switch {
		case err != nil:
			return fmt.Errorf("read how far the scopes of chat are: %w", err)
		case done:
			return nil
		}
		if wait, err := c.mustWait(ctx, tx); wait || err != nil {
			return err
		}
		if !sent {
			return c.send(ctx, tx, after)
		}
		done, err = c.ask(ctx, tx)
		return err
	})
	return done, err
}

// settle is in seconds.
func (c ChatRollout) settle() float64 {
	if c.Settle == 0 {
		return time.Minute.Seconds()
	}
	return c.Settle.Seconds()
}

// mustWait reports whether a process of before may run. The lists of processes and edges
// are empty after a crash of the database, until each has said that it is there.
func (c ChatRollout) mustWait(ctx context.Context, tx pgx.Tx) (wait bool, err error) {
	var former, early bool
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM processes WHERE knows < $1),
		pg_postmaster_start_time() > clock_timestamp() - make_interval(secs => $2)`, chatMigration, c.settle()).Scan(&former, &early)
	if err != nil {
		return false, fmt.Errorf("look for processes of before: %w", err)
	}
	if former { // what was sent before it came back, it may have sent without
		if _, err := tx.Exec(ctx, `UPDATE chat_scopes SET sent_to = '', sent_at = NULL WHERE sent_to <> '' OR sent_at IS NOT NULL`); err != nil {
			return false, fmt.Errorf("begin anew: %w", err)
		}
	}
	return former || early, nil
}

// send sends the records of the next keys, and notes how far it is with them.
func (c ChatRollout) send(ctx context.Context, tx pgx.Tx, after string) error {
	most := c.Batch
	if most == 0 {
		most = 500
	}
	rows, _ := tx.Query(ctx, `SELECT id, account_id FROM api_keys WHERE id > $1 AND chat_before AND revoked_at IS NULL ORDER BY id LIMIT $2`, after, most)
	var ids []string
	var owners []Import
	var id, owner string
	_, err := pgx.ForEachRow(rows, []any{&id, &owner}, func() error {
		ids, owners = append(ids, id), append(owners, Import{Account: owner})
		return nil
	})
	if err != nil {
		return fmt.Errorf("list keys of before: %w", err)
	}
	if len(ids) == 0 {
		if _, err := tx.Exec(ctx, `UPDATE chat_scopes SET sent_at = clock_timestamp(), feed_position = (SELECT head FROM edge_feed)`); err != nil {
			return fmt.Errorf("note that all keys of before were sent: %w", err)
		}
		return nil
	}
	if _, err := lockAccounts(ctx, tx, owners); err != nil {
		return err
	}
	known, err := scoperegistry.Load(ctx, tx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE chat_scopes SET sent_to = $1`, ids[len(ids)-1]); err != nil {
		return fmt.Errorf("note what was sent: %w", err)
	}
	list, err := selectForEdge(ctx, tx, `k.id = ANY ($1)`, ids)
	if err != nil {
		return err
	}
	return keyfeed.PutTx(ctx, tx, records(list, known)...)
}

// ask has routes ask, unless an edge is behind.
func (c ChatRollout) ask(ctx context.Context, tx pgx.Tx) (bool, error) {
	made, err := tx.Exec(ctx, `UPDATE chat_scopes s SET asked_at = clock_timestamp() FROM edge_feed f
		WHERE s.sent_at <= clock_timestamp() - make_interval(secs => $1)
		AND NOT EXISTS (SELECT FROM edges e WHERE e.feed_epoch <> f.epoch OR e.feed_position < least(s.feed_position, f.head))`, c.settle())
	if err != nil || made.RowsAffected() == 0 {
		return false, err
	}
	if _, err := tx.Exec(ctx, `SELECT pg_notify($1, '')`, c.Notify); err != nil {
		return false, fmt.Errorf("announce that routes ask: %w", err)
	}
	return true, nil
}

// ChatScopesAsked reports whether routes ask for ChatScopes. Once they do, they always will.
func ChatScopesAsked(ctx context.Context, db postgres.DB) (asked bool, err error) {
	if err := db.QueryRow(ctx, `SELECT asked_at IS NOT NULL FROM chat_scopes`).Scan(&asked); err != nil {
		return false, fmt.Errorf("read whether routes ask for the scopes of chat: %w", err)
	}
	return asked, nil
}
