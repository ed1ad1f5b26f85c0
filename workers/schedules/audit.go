package schedules

import (
	"context"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/storage/audit"
)

// noted is what the audit log keeps of a schedule: no value of a header, and not
// the payload, which may be long.
func noted(s *Schedule) any {
	if s == nil {
		return nil
	}
	shown := viewOf(*s)
	if shown.Webhook != nil {
		w := *shown.Webhook
		w.Payload = nil
		shown.Webhook = &w
	}
	return shown
}

// recordTx writes the audit log of a change; before and after may be nil.
func recordTx(ctx context.Context, tx pgx.Tx, account, action, id string, before, after *Schedule) error {
	return audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: action, Target: id, Before: noted(before), After: noted(after)})
}
