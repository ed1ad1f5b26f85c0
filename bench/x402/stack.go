package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"

	"sluice.dev/sluice/e2e/harness"
	"sluice.dev/sluice/workers/payments/evm"
)

// path is the route that has a price.
const path = "/v1/bench"

// payers is how many addresses pay: each has a row of its own in the ledger.
const payers = 16

// bed is a local stack, a product behind it, and payers with funds.
type bed struct {
	*harness.Stack
	product *httptest.Server
	client  *http.Client
	wallets []evm.Key
	payTo   evm.Address
}

func start() (*bed, error) {
	stack, err := harness.NewStack(map[string]string{"SLUICE_EDGE_CONCURRENCY": "1"})
	if err != nil {
		return nil, err
	}
	b := &bed{Stack: stack, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	b.product = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
	if err := b.up(); err != nil {
		b.stop()
		return nil, err
	}
	return b, nil
}

// up runs `sluice up`, sells the route, and gives the payers funds.
func (b *bed) up() error {
	if err := b.Up(); err != nil {
		return err
	}
	return errors.Join(b.sell(), b.fund())
}

// sell adds the route and its product, and waits until the edge has both.
func (b *bed) sell() error {
	var at struct{ Document map[string]any }
	etag, err := b.admin(http.MethodGet, "config", "", nil, &at)
	if err != nil {
		return err
	}
	d := at.Document
	list := func(name string, more map[string]any) { d[name] = append(d[name].([]any), more) }
	list("products", map[string]any{"name": "bench", "upstreams": []any{map[string]any{"address": b.product.Listener.Addr().String()}}})
	list("routes", map[string]any{"name": "bench", "methods": []string{"POST"}, "path": path, "auth": []string{"key"}, "scope": "clips:write", "product": "bench", "price": "0.01"})
	d["anonymous_per_minute"] = 1 << 24
	if b.payTo, err = evm.ParseAddress(d["x402"].(map[string]any)["pay_to"].(string)); err != nil {
		return err
	}
	if _, err := b.admin(http.MethodPut, "config", etag, d, nil); err != nil {
		return err
	}
	return harness.Until(func() error { return b.request(header{"Authorization", "Bearer " + b.Dev["SLUICE_API_KEY"]}) })
}

// fund makes payers and gives them more than they will spend.
func (b *bed) fund() error {
	for range payers {
		w, err := newWallet()
		if err != nil {
			return err
		}
		b.wallets = append(b.wallets, w)
		if _, err := b.admin(http.MethodPost, "x402/accounts/"+w.Address().String()+"/fund", "", map[string]string{"amount": "1000000000000"}, nil); err != nil {
			return err
		}
	}
	return nil
}

// admin calls the admin API; it returns the answer's ETag.
func (b *bed) admin(method, path, match string, in, out any) (etag string, err error) {
	var headers []string
	if match != "" {
		headers = []string{"If-Match", match}
	}
	a, err := harness.Ask(context.Background(), b.client, method, b.Dev["SLUICE_ADMIN_URL"]+"/admin/v1/"+path, b.Dev["SLUICE_ADMIN_KEY"], in, headers...)
	if err != nil {
		return "", err
	}
	return a.Header.Get("ETag"), a.Into(out)
}

func (b *bed) stop() {
	b.product.Close()
	b.Close()
}
