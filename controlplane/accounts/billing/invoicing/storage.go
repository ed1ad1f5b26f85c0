package invoicing

import (
	"context"
	"fmt"
	"time"
)

// keepStorage is for how long it is known what was stored on a day: as long as usage by days.
const keepStorage = 800 * 24 * time.Hour

// NoteStorage notes how much the media product stores of each account now, if that is the
// most of today, and returns of how many.
func (s Store) NoteStorage(ctx context.Context) (int, error) {
	tag, err := s.DB.Exec(ctx, `INSERT INTO storage_days AS d (account_id, day, bytes)
		SELECT owner, $1::date, sum(size)::bigint FROM media_files WHERE complete AND owner LIKE 'acct\_%' GROUP BY owner HAVING sum(size) > 0
		ON CONFLICT ON CONSTRAINT storage_days_pkey DO UPDATE SET bytes = excluded.bytes WHERE excluded.bytes > d.bytes`, s.now())
	if err != nil {
		return 0, fmt.Errorf("note what is stored: %w", err)
	}
	if _, err := s.DB.Exec(ctx, `DELETE FROM storage_days WHERE day < $1`, s.now().Add(-keepStorage)); err != nil {
		return 0, fmt.Errorf("drop old storage: %w", err)
	}
	return int(tag.RowsAffected()), nil
}
