package app

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/x402"
	"sluice.dev/sluice/platform/http/idempotency"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/workers/payments"
	"sluice.dev/sluice/workers/payments/chain"
	"sluice.dev/sluice/workers/payments/evm"
	"sluice.dev/sluice/workers/payments/ledger"
	"sluice.dev/sluice/workers/payments/payment"
	"sluice.dev/sluice/workers/payments/remote"
)

// payments verifies and settles payments by the configuration in force.
func (p *process) payments(s services, store config.Store) (*payments.Service, error) {
	settler, err := p.settler(p.pool, s.outbound)
	if err != nil {
		return nil, err
	}
	return payments.New(payments.Config{DB: p.pool, Jobs: s.jobs, Settler: settler, Now: p.now, Terms: func(ctx context.Context) (x402.Terms, error) {
		v, err := store.Latest(ctx)
		return v.Document.X402.Terms(), err
	}}), nil
}

// paymentsAdmin is payments as operators see them.
func (c *controlPlane) paymentsAdmin() payments.Admin {
	return payments.Admin{DB: idempotency.DB{Pool: c.pool}, Document: c.newestDocument}
}

// settler is how money moves.
func (e Environment) settler(pool *pgxpool.Pool, client *outbound.Client) (payment.Settler, error) {
	switch name := e.Get("SLUICE_X402_SETTLEMENT"); name {
	case "ledger":
		return ledger.Ledger{DB: pool}, nil
	case "facilitator":
		url, err := e.Require("SLUICE_X402_FACILITATOR_URL")
		if err != nil {
			return nil, err
		}
		return remote.New(remote.Config{URL: url, Client: client}), nil
	case "rpc":
		return e.chain(pool, client)
	default:
		return nil, fmt.Errorf("SLUICE_X402_SETTLEMENT is %q: expected ledger, facilitator or rpc", name)
	}
}

// chain settles on a chain, through a node.
func (e Environment) chain(pool *pgxpool.Pool, client *outbound.Client) (payment.Settler, error) {
	url, err := e.Require("SLUICE_X402_RPC_URL")
	if err != nil {
		return nil, err
	}
	secret, err := e.Require("SLUICE_X402_SIGNER_KEY")
	if err != nil {
		return nil, err
	}
	key, err := evm.ParseKey(secret)
	if err != nil {
		return nil, fmt.Errorf("SLUICE_X402_SIGNER_KEY: %w", err)
	}
	confirmations, err := e.number("SLUICE_X402_CONFIRMATIONS", 1, 1000)
	if err != nil {
		return nil, err
	}
	gas, err := e.number("SLUICE_X402_MAX_GAS", 1, 30_000_000)
	if err != nil {
		return nil, err
	}
	fee, err := e.number("SLUICE_X402_MAX_FEE_GWEI", 1, 1_000_000)
	if err != nil {
		return nil, err
	}
	return chain.New(chain.Config{
		URL: url, Client: client, Key: key, DB: pool, Confirmations: uint64(confirmations), MaxGas: uint64(gas), MaxFee: uint64(fee) * 1e9,
	}), nil
}
