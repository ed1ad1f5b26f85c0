package schedules

import (
	"context"
	"fmt"

	"sluice.dev/sluice/platform/ids"
)

// Prune removes one batch of executions that ended longer ago than the
// retention, and returns how many. The caller repeats it until it returns 0.
// Ids sort by the time they were made, so the primary key finds the oldest.
func (s *Service) Prune(ctx context.Context) (int, error) {
	tag, err := s.DB.Exec(ctx, `
		DELETE FROM schedule_executions WHERE id IN (
			SELECT id FROM schedule_executions WHERE id < $1 AND status IN ('success', 'failed', 'skipped') ORDER BY id LIMIT $2)`,
		ids.First(executionPrefix, s.now().Add(-s.Retention)), 2*s.Batch)
	if err != nil {
		return 0, fmt.Errorf("prune executions: %w", err)
	}
	return int(tag.RowsAffected()), nil
}
