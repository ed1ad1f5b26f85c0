package app

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"sluice.dev/sluice/controlplane/accounts/oauth"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/secretbox"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/delivery"
)

// services are those that several processes share: the API takes requests for
// them, products emit events into them, and workers do their work.
type services struct {
	jobs          *river.Client[pgx.Tx] // inserts only
	answerSecrets [][32]byte            // the first protects the answers kept for repeated requests, all open them
	outbound      *outbound.Client
	webhooks      *webhooks.Service
	deliverer     *delivery.Deliverer
	schedules     *schedules.Service
}

// services builds them; db is what their stores use, which is the pool or joins the
// transaction of a request that may be repeated.
func (p *process) services(db postgres.DB) (s services, err error) {
	box, err := p.box()
	if err != nil {
		return s, err
	}
	if s.answerSecrets, err = p.answerSecrets(); err != nil {
		return s, err
	}
	allow, err := p.prefixes("SLUICE_WEBHOOK_ALLOW_CIDRS")
	if err != nil {
		return s, err
	}
	// This client inserts only. Its cooldown bounds how soon workers are told of a
	// second job: the default adds 30 ms to a webhook's way.
	s.jobs, err = river.NewClient(riverpgxv5.New(p.pool), &river.Config{FetchCooldown: 5 * time.Millisecond, Logger: slog.Default(), Middleware: p.tracer.Jobs()})
	if err != nil {
		return s, err
	}
	s.outbound = outbound.New(outbound.Config{Allow: allow, MaxIdlePerHost: 64})
	s.webhooks = webhooks.New(webhooks.Config{DB: db, Jobs: s.jobs, Box: box, Client: s.outbound, Now: p.now})
	s.deliverer = delivery.New(delivery.Config{DB: p.pool, Service: s.webhooks, Client: s.outbound, Metrics: p.metrics, Now: p.now})
	s.schedules = schedules.New(schedules.Config{DB: db, Jobs: s.jobs, Events: s.webhooks, Box: box, CheckURL: s.outbound.CheckURL, Now: p.now})
	return s, nil
}

// resumed lets the deliveries and schedules of an account go on that waited while it was
// suspended.
func (s services) resumed(ctx context.Context, tx pgx.Tx, account string) error {
	if err := s.webhooks.ReleaseTx(ctx, tx, account); err != nil {
		return err
	}
	return s.schedules.ReleaseTx(ctx, tx, account)
}

// box encrypts the secrets that are stored, by the first key; all of them decrypt.
func (e Environment) box() (*secretbox.Box, error) {
	if _, err := e.Require("SLUICE_SECRETS_KEY"); err != nil {
		return nil, err
	}
	return secretbox.New(e.secretsKeys()...)
}

// answerSecrets are derived from the keys that encrypt, in their order.
func (e Environment) answerSecrets() (list [][32]byte, err error) {
	for _, key := range e.secretsKeys() {
		derived, err := hkdf.Expand(sha256.New, []byte(key), "kept answers", 32)
		if err != nil {
			return nil, err
		}
		list = append(list, [32]byte(derived))
	}
	return list, nil
}

// sessions is how every process makes and checks session tokens.
func (e Environment) sessions(db postgres.DB) (*sessions.Service, error) {
	box, err := e.box()
	if err != nil {
		return nil, err
	}
	return sessions.New(sessions.Config{DB: db, Issuer: e.publicURL(), Audience: e.publicURL(), Box: box, Now: e.now}), nil
}

// oauth is how every process makes and checks grants to applications.
func (e Environment) oauth(db postgres.DB, s *sessions.Service) *oauth.Service {
	return oauth.New(oauth.Config{DB: db, Sessions: s, Issuer: e.publicURL(), Audience: e.publicURL(), Now: e.now})
}
