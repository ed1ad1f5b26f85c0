package jobs

import (
	"context"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"sluice.dev/sluice/workers/payments"
	"sluice.dev/sluice/workers/payments/payment"
)

// AddPayments registers the job that finds out what became of payments.
func AddPayments(w *river.Workers, s *payments.Service) {
	river.AddWorker(w, &paymentWorker{service: s})
}

// PaymentQueues is the queue of payments with its size, to be worked beside DueJobs: each
// job may wait for others as long as a settlement takes.
func PaymentQueues() map[string]river.QueueConfig {
	return map[string]river.QueueConfig{payment.Queue: {MaxWorkers: 50, FetchCooldown: 100 * time.Millisecond}}
}

// paymentWorker runs payment.ResolveArgs.
type paymentWorker struct {
	river.WorkerDefaults[payment.ResolveArgs]
	service *payments.Service
}

// Work comes back until the payment has ended. It never fails: what becomes of
// a payment is in its own table.
func (w *paymentWorker) Work(ctx context.Context, job *river.Job[payment.ResolveArgs]) error {
	wait, err := w.service.Resolve(ctx, job.Args.Payment)
	if err != nil {
		slog.WarnContext(ctx, "payment put off", "payment", job.Args.Payment, "cause", err)
		return river.JobSnooze(storeUnreachable)
	}
	if wait > 0 {
		return river.JobSnooze(wait)
	}
	return nil
}
