package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/x402"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/idempotency"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/limits/fairshare"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/web/api"
	"sluice.dev/sluice/workers/payments"
	"sluice.dev/sluice/workers/payments/chain"
	"sluice.dev/sluice/workers/payments/evm"
	"sluice.dev/sluice/workers/payments/ledger"
	"sluice.dev/sluice/workers/payments/payment"
	"sluice.dev/sluice/workers/payments/remote"
)

// hub is what judges and settles payments, in every process that does.
func (e environment) hub(pool *pgxpool.Pool, s services) (*payments.Service, error) {
	settler, err := e.settler(pool, s.outbound)
	if err != nil {
		return nil, err
	}
	return payments.New(payments.Config{DB: pool, Jobs: s.jobs, Settler: settler, Now: e.now, Terms: func(ctx context.Context) (x402.Terms, error) {
		d, err := document(pool)(ctx)
		return d.X402.Terms(), err
	}}), nil
}

// paymentHandlers are what the control plane serves about payments.
type paymentHandlers struct {
	edges       http.Handler
	open, admin api.Routes
}

func (e environment) payments(pool *pgxpool.Pool, verifier identity.Verifier, adapter httpapi.Adapter) (p paymentHandlers, err error) {
	s, err := e.services(pool, pool, prometheus.NewRegistry(), nil) // deliveries, which have metrics, are not made here
	if err != nil {
		return p, err
	}
	h, err := e.hub(pool, s)
	if err != nil {
		return p, err
	}
	facilitator := payments.Facilitator{Service: h, Document: document(pool), Identity: verifier, BaseURL: e.publicURL(), Places: fairshare.New(fairshare.Config{Places: 32})}
	admin := payments.Admin{DB: idempotency.DB{Pool: pool}, Document: document(pool)}
	return paymentHandlers{
		edges: h.EdgeHandler(verifier, adapter),
		open:  func(r chi.Router) { facilitator.Routes(r, adapter) },
		admin: func(r chi.Router) { admin.Routes(r, adapter) },
	}, nil
}

// settler is how money moves.
func (e environment) settler(pool *pgxpool.Pool, client *outbound.Client) (payment.Settler, error) {
	switch name := e.get("SLUICE_X402_SETTLEMENT"); name {
	case "ledger":
		return ledger.Ledger{DB: pool}, nil
	case "facilitator":
		url, err := e.require("SLUICE_X402_FACILITATOR_URL")
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
func (e environment) chain(pool *pgxpool.Pool, client *outbound.Client) (payment.Settler, error) {
	url, err := e.require("SLUICE_X402_RPC_URL")
	if err != nil {
		return nil, err
	}
	secret, err := e.require("SLUICE_X402_SIGNER_KEY")
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

// document reads the configuration in force.
func document(pool *pgxpool.Pool) func(context.Context) (config.Document, error) {
	return func(ctx context.Context) (config.Document, error) {
		v, err := config.Store{DB: pool}.Latest(ctx)
		return v.Document, err
	}
}

// x402Command is `sluice x402`.
func x402Command(env environment) *cobra.Command {
	c := &cobra.Command{Use: "x402", Short: "give addresses test funds, and see payments"}
	c.AddCommand(x402Fund(env), x402Balance(env), x402Payments(env))
	return c
}

var balanceFields = []string{"address", "balance", "held", "received"}

func x402Fund(env environment) *cobra.Command {
	var out printer
	c := &cobra.Command{
		Use: "fund ADDRESS AMOUNT_ATOMIC", Short: "add to an address in the test ledger, in the token's smallest units", Args: cobra.ExactArgs(2),
		Example: "  sluice x402 fund 0x… 1000000    # one USDC",
		RunE: func(c *cobra.Command, args []string) error {
			answer, err := env.call(c.Context(), http.MethodPost, accountPath(args[0])+"/fund", map[string]any{"amount": args[1]})
			if err != nil {
				return err
			}
			return out.one(c.OutOrStdout(), answer, balanceFields...)
		},
	}
	out.flag(c)
	return c
}

func x402Balance(env environment) *cobra.Command {
	var out printer
	c := &cobra.Command{
		Use: "balance ADDRESS", Short: "show what an address has in the test ledger", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			answer, err := env.call(c.Context(), http.MethodGet, accountPath(args[0]), nil)
			if err != nil {
				return err
			}
			return out.one(c.OutOrStdout(), answer, balanceFields...)
		},
	}
	out.flag(c)
	return c
}

func x402Payments(env environment) *cobra.Command {
	var out printer
	var limit, offset int
	var query [3]string
	names := []string{"route", "state", "payer"}
	c := &cobra.Command{
		Use: "payments", Short: "list payments, newest first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			path := fmt.Sprintf("/admin/v1/payments?limit=%d&offset=%d", limit, offset)
			for i, name := range names {
				path += "&" + name + "=" + url.QueryEscape(query[i])
			}
			answer, err := env.call(c.Context(), http.MethodGet, path, nil)
			if err != nil {
				return err
			}
			return out.list(c.OutOrStdout(), answer, "id", "state", "reason", "route", "payer", "amount", "transaction", "created_at")
		},
	}
	out.flag(c)
	pageFlags(c, &limit, &offset)
	for i, name := range names {
		c.Flags().StringVar(&query[i], name, "", "only those of this "+name)
	}
	return c
}

func accountPath(address string) string { return "/admin/v1/x402/accounts/" + url.PathEscape(address) }
