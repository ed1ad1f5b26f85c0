package transports

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres"
)

const columns = `id, owner, stream_id, transport, direction, name, address, spec, state, message, stats, described, seen_at, created_at`

// maxLinks bounds the links of one owner, and everyLink those of all: each keeps a part
// of a processor busy.
const (
	maxLinks  = 20
	everyLink = 500
)

// insert stores a link, unless its owner has enough.
func (v Service) insert(ctx context.Context, l Link) error {
	err := postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('media_links', 0))`); err != nil {
			return err
		}
		var own, all int
		if err := tx.QueryRow(ctx, `SELECT count(*) FILTER (WHERE owner = $1), count(*) FROM media_links`, l.Owner).Scan(&own, &all); err != nil {
			return err
		}
		if own >= maxLinks || all >= everyLink {
			return apierror.Errorf(decision.Conflict, "There are %d inputs and outputs of yours, and %d of all accounts; %d and %d are allowed. Delete one first.", own, all, maxLinks, everyLink)
		}
		_, err := tx.Exec(ctx, `INSERT INTO media_links (id, owner, stream_id, transport, direction, name, address, spec, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, l.ID, l.Owner, l.StreamID, l.Transport, l.Direction, l.Name, l.Address, l.Spec, l.CreatedAt)
		return err
	})
	switch postgres.Constraint(err) {
	case "media_links_input_key":
		return apierror.Errorf(decision.Conflict, "The stream has a source already. Delete that input first.")
	case "media_links_output_key":
		return apierror.Errorf(decision.Conflict, "%s is taken by another output: name another address or port.", l.Address)
	case "media_links_output_name_key":
		return apierror.Errorf(decision.Conflict, "The name is taken by another output.")
	case "media_links_stream_fkey":
		return &apierror.Error{Code: decision.NotFound}
	}
	return err
}

// get reads one link of owner, or not_found.
func (v Service) get(ctx context.Context, owner, transport, direction, id string) (Link, error) {
	rows, _ := v.DB.Query(ctx, `SELECT `+columns+` FROM media_links WHERE owner = $1 AND transport = $2 AND direction = $3 AND id = $4`, owner, transport, direction, id)
	l, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Link])
	return l, postgres.NotFound(err, "read link")
}

// remove deletes one link of owner, or not_found.
func (v Service) remove(ctx context.Context, owner, transport, direction, id string) error {
	tag, err := v.DB.Exec(ctx, `DELETE FROM media_links WHERE owner = $1 AND transport = $2 AND direction = $3 AND id = $4`, owner, transport, direction, id)
	if err == nil && tag.RowsAffected() == 0 {
		return &apierror.Error{Code: decision.NotFound}
	}
	return err
}

// links is how links are listed: newest first.
var links = paging.Table[Link]{
	Columns: columns, From: "media_links", Scan: pgx.RowToStructByName[Link],
	Sorts: []paging.Sort[Link]{paging.Time("created_at", "created_at", func(l Link) time.Time { return l.CreatedAt })},
	ID:    "id", IDOf: func(l Link) string { return l.ID },
	Created: "created_at",
}

// list reads a page of owner's links of a transport and direction.
func (v Service) list(ctx context.Context, owner, transport, direction, stream string, p paging.Page) (paging.List[Link], error) {
	return links.Read(ctx, v.DB, p, `owner = $1 AND transport = $2 AND direction = $3 AND ($4 = '' OR stream_id = $4)`, owner, transport, direction, stream)
}

// maxSources bounds the sources that are remembered of a transport, and listed.
const maxSources = 1000

// sources lists what was heard of a transport and is not forgotten.
func (v Service) sources(ctx context.Context, transport string) ([]Source, error) {
	rows, _ := v.DB.Query(ctx, `SELECT transport, id, name, address, spec, seen_at FROM media_transport_sources
		WHERE transport = $1 AND seen_at > $2 ORDER BY name, id LIMIT $3`, transport, v.Now().Add(-forgotten), maxSources)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[Source])
	if err != nil {
		return nil, fmt.Errorf("list sources: %w", err)
	}
	return found, nil
}

// links reads the links that the engine's process works on, with their streams'
// playback ids.
func (s *Supervisor) links(ctx context.Context) ([]wanted, error) {
	rows, _ := s.DB.Query(ctx, `SELECT l.id, l.owner, l.stream_id, l.transport, l.direction, l.name, l.address, l.spec, m.playback_id
		FROM media_links l JOIN media_streams m ON m.id = l.stream_id ORDER BY l.created_at LIMIT $1`, everyLink)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[wanted])
	if err != nil {
		return nil, fmt.Errorf("read links: %w", err)
	}
	return found, nil
}

// store writes what is said of a link.
func (s *Supervisor) store(ctx context.Context, id string, r report) error {
	_, err := s.DB.Exec(ctx, `UPDATE media_links SET state = $2, message = $3, stats = $4, seen_at = $5, described = $6 WHERE id = $1`,
		id, r.state, r.message, r.stats, s.Now(), r.described)
	if err != nil {
		return fmt.Errorf("store link's state: %w", err)
	}
	return nil
}

// remember stores sources that were heard, and forgets those that are gone or were not
// heard for long. Of each transport maxSources are remembered: further ones are left out,
// so that whoever floods the network displaces nobody.
func (s *Supervisor) remember(ctx context.Context, heard []Source, gone []Source) error {
	batch := &pgx.Batch{}
	batch.Queue(`DELETE FROM media_transport_sources WHERE seen_at < $1`, s.Now().Add(-forgotten))
	for _, f := range gone {
		batch.Queue(`DELETE FROM media_transport_sources WHERE transport = $1 AND id = $2`, f.Transport, f.ID)
	}
	for _, f := range heard {
		batch.Queue(`INSERT INTO media_transport_sources (transport, id, name, address, spec, seen_at)
			SELECT $1, $2, $3, $4, $5::jsonb, $6::timestamptz
			WHERE EXISTS (SELECT FROM media_transport_sources WHERE transport = $1 AND id = $2)
				OR (SELECT count(*) FROM media_transport_sources WHERE transport = $1) < $7
			ON CONFLICT (transport, id) DO UPDATE SET name = excluded.name, address = excluded.address, spec = excluded.spec, seen_at = excluded.seen_at`,
			f.Transport, f.ID, f.Name, f.Address, f.Spec, f.SeenAt, maxSources)
	}
	err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error { return tx.SendBatch(ctx, batch).Close() })
	if err != nil {
		return fmt.Errorf("remember sources: %w", err)
	}
	return nil
}

// forgotten is after how long a source that is not heard counts as gone: ten announcements.
// RFC 2974 has an hour at least, which is long for a list of what can be had now.
const forgotten = 5 * time.Minute
