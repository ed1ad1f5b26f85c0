package main

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/controlplane/gateway/issuers"
	"sluice.dev/sluice/platform/outbound"
)

// issuers keeps the public keys of those whose tokens are accepted at the edges.
func (e environment) issuers(pool *pgxpool.Pool) (*issuers.Service, error) {
	allow, err := e.prefixes("SLUICE_WEBHOOK_ALLOW_CIDRS")
	if err != nil {
		return nil, err
	}
	people, err := e.sessions(pool)
	if err != nil {
		return nil, err
	}
	return issuers.New(issuers.Config{
		DB:     pool,
		Own:    e.publicURL(),
		Keys:   people.Keyring.Public,
		Client: outbound.New(outbound.Config{Allow: allow, MaxBody: issuers.MaxBody}),
	}), nil
}
