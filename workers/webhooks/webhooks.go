// Package webhooks stores the events of accounts, finds the subscriptions to each,
// and keeps the deliveries with every attempt. Requests to receivers are made by its
// sub-package delivery, driven by the workers.
//
// An event, its deliveries and their jobs commit in one transaction, that of
// the change which caused them. From then on a delivery ends in exactly one
// way: succeeded, or failed with WEBHOOK_001 and an event that says so.
package webhooks

import (
	"log/slog"
	"time"

	"sluice.dev/sluice/platform/limits/fairshare"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/secretbox"
	"sluice.dev/sluice/workers/webhooks/catalogue"
	"sluice.dev/sluice/workers/webhooks/sender"
)

// Config says what a Service works with.
type Config struct {
	DB   postgres.DB    // required
	Jobs Jobs           // required: a River client, which need not be started
	Box  *secretbox.Box // required: opens and seals secrets
	// Client checks URLs and makes test requests. Required for handlers, not
	// for EmitTx.
	Client sender.Client
	// Groups are those of events that happen in this deployment, such as webhook;
	// nil: all. Others cannot be subscribed to.
	Groups []string
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// MaxSubscriptions per account; 0: 10,000.
	MaxSubscriptions int
	// Log; nil: slog.Default.
	Log *slog.Logger
}

// Service is the webhook service. It implements events.Emitter.
type Service struct {
	Config
	listeners *fairshare.Pool // of this process: each asks the database twice a second
}

// Types are the events that happen in this deployment.
func (s *Service) Types() []catalogue.Type { return catalogue.Of(s.Groups) }

// New returns a service; it starts nothing.
func New(c Config) *Service {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.MaxSubscriptions == 0 {
		c.MaxSubscriptions = 10_000
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &Service{Config: c, listeners: fairshare.New(fairshare.Config{Places: listenPlaces, Share: listenShare, Waiting: listenShare})}
}
