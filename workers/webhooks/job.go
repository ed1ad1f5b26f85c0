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
	// Account is whose it is. Empty: made by a release that did not say.
	Account string `json:"a,omitempty"`
}

// Kind names the job in the queue.
func (DeliveryArgs) Kind() string { return "webhook_delivery" }

// RecoveryArgs asks for the next step of a recovery.
type RecoveryArgs struct {
	Recovery string `json:"recovery"`
	Account  string `json:"account,omitempty"` // as in DeliveryArgs
}

// Kind names the job in the queue.
func (RecoveryArgs) Kind() string { return "webhook_recovery" }

// The priorities of jobs within a queue: those of a lower number are taken first.
const (
	First  = 1
	Second = 2 // what a recovery sends again, and an event for more than firstDeliveries subscriptions
	Behind = 3 // of an account that has its share under way
)

// firstDeliveries is how many deliveries of one event go First.
const firstDeliveries = 100

// optsFirst and optsSecond are shared: fan-out makes thousands of jobs.
var (
	optsFirst  = &river.InsertOpts{Queue: QueueFirst, Priority: First}
	optsSecond = &river.InsertOpts{Queue: QueueFirst, Priority: Second}
)

// DeliveryJob is the job for an immediate attempt, after which earlier ones were
// made for the same reason.
func DeliveryJob(a DeliveryArgs, earlier int) river.InsertManyParams {
	if earlier >= firstDeliveries {
		return river.InsertManyParams{Args: a, InsertOpts: optsSecond}
	}
	return river.InsertManyParams{Args: a, InsertOpts: optsFirst}
}
