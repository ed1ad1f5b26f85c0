package webhooks

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
)

// The queues of deliveries. First attempts never wait behind retries, and
// endpoints that are slow share a queue in which they delay only each other.
const (
	QueueFirst      = "webhooks"
	QueueRetry      = "webhooks_retry"
	QueueSlow       = "webhooks_slow"
	QueueBackground = "webhooks_background" // recoveries and housekeeping
)

// Jobs puts jobs into the queue inside a transaction. *river.Client has it.
type Jobs interface {
	InsertManyFastTx(ctx context.Context, tx pgx.Tx, params []river.InsertManyParams) (int, error)
}

// DeliveryArgs asks for one attempt. The names are short because the queue
// indexes them.
type DeliveryArgs struct {
	Delivery     int64  `json:"d"`
	Generation   int    `json:"g"` // see webhook_deliveries
	Subscription string `json:"s"` // lets a worker see a slow endpoint without asking the database
}

// Kind names the job in the queue.
func (DeliveryArgs) Kind() string { return "webhook_delivery" }

// RecoveryArgs asks for the next step of a recovery.
type RecoveryArgs struct {
	Recovery string `json:"recovery"`
}

// Kind names the job in the queue.
func (RecoveryArgs) Kind() string { return "webhook_recovery" }

// optsFirst is shared by all first attempts: fan-out makes thousands of them.
var optsFirst = &river.InsertOpts{Queue: QueueFirst}

// DeliveryJob is the job for an immediate attempt.
func DeliveryJob(a DeliveryArgs) river.InsertManyParams {
	return river.InsertManyParams{Args: a, InsertOpts: optsFirst}
}
