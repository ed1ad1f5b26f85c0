package delivery_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/platform/clock/clocktest"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/delivery"
	"sluice.dev/sluice/workers/webhooks/webhooktest"
)

// bundle is a service with a deliverer and no workers: tests run the jobs.
type bundle struct {
	*webhooktest.Bundle
	*delivery.Deliverer
	clock    *clocktest.Clock
	receiver *webhooktest.Receiver
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func setup(t *testing.T) bundle {
	t.Helper()
	c := clocktest.New(start)
	b := webhooktest.New(t, c.Now)
	d := delivery.New(delivery.Config{
		DB: b.Pool, Service: b.Service, Client: b.Client, Now: c.Now, Random: func() float64 { return 0 },
	})
	return bundle{b, d, c, webhooktest.NewReceiver(t)}
}

// next runs the earliest job when it is due, and returns when it ran by the
// test's clock and what came of it.
func (b bundle) next() (time.Time, delivery.Result) {
	b.T.Helper()
	jobs := b.Jobs()
	if len(jobs) == 0 {
		b.T.Fatal("no job is left")
	}
	return b.run(jobs[0])
}

func (b bundle) run(j webhooktest.Job) (time.Time, delivery.Result) {
	b.T.Helper()
	// First attempts are due at once, by the database's clock.
	if j.Queue == webhooks.QueueRetry && b.clock.Now().Before(j.At) {
		b.clock.Set(j.At)
	}
	r, err := b.Attempt(b.T.Context(), b.Take(j))
	if err != nil {
		b.T.Fatal(err)
	}
	return b.clock.Now(), r
}

// only returns the one delivery of a subscription.
func (b bundle) only(id string) webhooks.DeliveryDetail {
	b.T.Helper()
	list, err := b.Service.Deliveries(b.T.Context(), webhooktest.Account, id, webhooks.DeliveryFilter{Limit: 10})
	if err != nil || len(list) != 1 {
		b.T.Fatalf("%d deliveries, %v", len(list), err)
	}
	return b.detail(list[0])
}

func (b bundle) detail(d webhooks.Delivery) webhooks.DeliveryDetail {
	b.T.Helper()
	detail, err := b.Service.Delivery(b.T.Context(), webhooktest.Account, d.WebhookID, d.Number())
	if err != nil {
		b.T.Fatal(err)
	}
	return detail
}
