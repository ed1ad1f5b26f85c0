package schedules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/reencrypt"
	"sluice.dev/sluice/platform/storage/secretbox"
	"sluice.dev/sluice/workers/schedules/definition"
)

// Sealed is where the headers of webhooks are stored, for reseal.
func Sealed() reencrypt.Column {
	return reencrypt.Column{Table: "schedules", ID: "id", Value: "sealed_headers", Row: sealRow}
}

// sealRow is what the sealed headers of a schedule are bound to.
func sealRow(id string) string { return "headers of " + id }

// errUnreadable says that the headers of a webhook cannot be opened.
var errUnreadable = errors.New("the headers of the webhook cannot be opened: was SLUICE_SECRETS_KEY changed?")

// sealed is what is stored of a definition: the values of headers apart from the
// rest, unless processes that cannot read that may still run.
func (s *Service) sealed(ctx context.Context, tx pgx.Tx, id string, d definition.Definition) (definition.Definition, []byte, error) {
	if s.Box == nil || !hasHeaders(d) {
		return d, nil, nil
	}
	var upgrading bool
	if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM schedule_sealing WHERE seal_after > $1)`, s.now()).Scan(&upgrading); err != nil {
		return d, nil, fmt.Errorf("read when headers may be sealed: %w", err)
	}
	if upgrading {
		return d, nil, nil
	}
	return apart(s.Box, id, d)
}

func hasHeaders(d definition.Definition) bool { return d.Webhook != nil && len(d.Webhook.Headers) > 0 }

// apart takes the values of headers out of a definition that has some, and seals
// them.
func apart(box *secretbox.Box, id string, d definition.Definition) (definition.Definition, []byte, error) {
	values, err := json.Marshal(d.Webhook.Headers)
	if err != nil {
		return d, nil, err
	}
	names := maps.Clone(d.Webhook.Headers)
	for name := range names {
		names[name] = definition.Sealed
	}
	return withHeaders(d, names), box.Seal(values, sealRow(id)), nil
}

// withHeaders is d, which has a webhook, with other headers.
func withHeaders(d definition.Definition, headers map[string]string) definition.Definition {
	hook := *d.Webhook
	hook.Headers, d.Webhook = headers, &hook
	return d
}

// opened is a stored definition with the values of its headers. One that stands in
// it goes before what is sealed: a process of before has written it. It fails when
// the value of any header is missing.
func (s *Service) opened(id string, d definition.Definition, sealed []byte) (definition.Definition, error) {
	if !hasHeaders(d) {
		return d, nil
	}
	all := maps.Clone(d.Webhook.Headers)
	var values map[string]string
	for name, value := range all {
		if value != definition.Sealed {
			continue
		}
		if values == nil {
			if values = s.values(id, sealed); values == nil {
				return d, fmt.Errorf("schedule %s: %w", id, errUnreadable)
			}
		}
		known, ok := values[name]
		if !ok {
			return d, fmt.Errorf("schedule %s: %w", id, errUnreadable)
		}
		all[name] = known
	}
	return withHeaders(d, all), nil
}

// values opens the sealed values of a schedule's headers; nil when that fails. No
// cause is told: one could quote a value.
func (s *Service) values(id string, sealed []byte) (values map[string]string) {
	if s.Box == nil {
		return nil
	}
	plain, err := s.Box.Open(sealed, sealRow(id))
	if err != nil || json.Unmarshal(plain, &values) != nil {
		return nil
	}
	return values
}

// openHeaders puts the values of headers into the definition of an attempt. One of
// which they cannot be opened does not keep others from being begun.
func (s *Service) openHeaders(a *Attempt) {
	d, err := s.opened(a.Schedule, a.Definition, a.Sealed)
	if err != nil {
		s.Log.Error("a scheduled webhook is not called", "execution", a.Execution, "cause", err)
	}
	a.Definition, a.Sealed, a.Unreadable = d, nil, err != nil
}

// walkRows is how many schedules one step of a walk looks at.
const walkRows = 500

// openRow is a stored schedule of which a header lies open.
type openRow struct {
	ID         string
	Definition definition.Definition
	Sealed     []byte
}

// SealHeaders seals the headers that lie open of the next schedules, and reports
// whether there are more to look at. A walk over all of them begins once a day, when
// no process that cannot read sealed ones may run any more; of several processes one
// does each step, and the next goes on after it.
func (s *Service) SealHeaders(ctx context.Context) (more bool, err error) {
	if s.Box == nil {
		return false, nil
	}
	done := 0
	err = postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		now := s.now()
		var from, to string
		err := tx.QueryRow(ctx, `SELECT walked_to FROM schedule_sealing WHERE greatest(seal_after, walk_after) <= $1 FOR UPDATE SKIP LOCKED`, now).Scan(&from)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		var n int
		err = tx.QueryRow(ctx, `SELECT coalesce(max(id), ''), count(*) FROM (SELECT id FROM schedules WHERE id > $1 ORDER BY id LIMIT $2) AS next`, from, walkRows).Scan(&to, &n)
		if err != nil {
			return err
		}
		if done, err = s.sealRows(ctx, tx, from, to); err != nil {
			return err
		}
		if more = n == walkRows; more {
			_, err = tx.Exec(ctx, `UPDATE schedule_sealing SET walked_to = $1`, to)
		} else {
			_, err = tx.Exec(ctx, `UPDATE schedule_sealing SET walked_to = '', walk_after = $1::timestamptz + interval '1 day'`, now)
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("seal headers of schedules: %w", err)
	}
	if done > 0 {
		s.Log.Info("headers of scheduled webhooks were sealed", "schedules", done)
	}
	return more, nil
}

// sealRows seals the headers that lie open of the schedules after one id and up to
// another, and returns of how many. A schedule whose other headers cannot be opened is left as it is.
func (s *Service) sealRows(ctx context.Context, tx pgx.Tx, from, to string) (int, error) {
	rows, _ := tx.Query(ctx, `SELECT id, definition, sealed_headers FROM schedules WHERE id > $1 AND id <= $2
		AND EXISTS (SELECT FROM json_each_text(definition -> 'webhook' -> 'headers') WHERE value <> $3)
		ORDER BY id FOR NO KEY UPDATE`, from, to, definition.Sealed)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[openRow])
	if err != nil {
		return 0, err
	}
	var batch pgx.Batch
	for _, r := range list {
		d, err := s.opened(r.ID, r.Definition, r.Sealed)
		if err == nil {
			d, r.Sealed, err = apart(s.Box, r.ID, d)
		}
		if err != nil {
			s.Log.Error("headers of a scheduled webhook are not sealed", "cause", err)
			continue
		}
		batch.Queue(`UPDATE schedules SET definition = $2, sealed_headers = $3 WHERE id = $1`, r.ID, d, r.Sealed)
	}
	return batch.Len(), tx.SendBatch(ctx, &batch).Close()
}
