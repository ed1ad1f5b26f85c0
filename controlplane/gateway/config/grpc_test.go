package config

import (
	"slices"
	"testing"
)

// grpc:// says what a product that speaks gRPC says at length.
func TestUpstreamsOfGRPC(t *testing.T) {
	t.Parallel()
	for upstream, want := range map[string]struct {
		address string
		tls     bool
	}{"grpc://10.0.0.1:50051": {"10.0.0.1:50051", false}, "grpc://orders.internal": {"orders.internal:80", false}, "grpcs://orders.example": {"orders.example:443", true}} {
		p := Product{Name: "orders", Upstream: upstream}.complete()
		if !p.GRPC || !p.SpeaksHTTP2() || p.Upstream != "" || len(p.Upstreams) != 1 || p.Upstreams[0].Address != want.address || (p.TLS != nil) != want.tls {
			t.Errorf("%s: %+v", upstream, p)
		}
	}
	for _, upstream := range []string{"grpcs://10.0.0.1:443", "grpc://10.0.0.1:1/path", "grpcx://10.0.0.1:1", "http://10.0.0.1:1"} {
		if p := (Product{Name: "orders", Upstream: upstream}).complete(); p.GRPC {
			t.Errorf("%s: %+v", upstream, p)
		}
	}
}

func TestFaultsOfGRPC(t *testing.T) {
	t.Parallel()
	whole, odd := "", "no service"
	for _, c := range []struct {
		name   string
		change func(*Document)
		want   []string
	}{
		{"the whole server's health", func(d *Document) { d.Products[0].GRPC, d.Products[0].Health = true, &Health{GRPC: &whole} }, nil},
		{"by HTTP/1.1", func(d *Document) { d.Products[0].Health = &Health{GRPC: &whole} }, []string{"products[0].health.grpc"}},
		{"beside a path", func(d *Document) { d.Products[0].GRPC, d.Products[0].Health = true, &Health{GRPC: &whole, Path: "/"} }, []string{"products[0].health.grpc"}},
		{"no name", func(d *Document) { d.Products[0].GRPC, d.Products[0].Health = true, &Health{GRPC: &odd} }, []string{"products[0].health.grpc"}},
		{"neither", func(d *Document) { d.Products[0].Health = &Health{} }, []string{"products[0].health.path"}},
		{"for sale", func(d *Document) {
			d.X402 = &X402{Network: "base-sepolia", PayTo: "0x209693Bc6afc0C5328bA36FaF03C514EF312287C"}
			d.Products[0].GRPC, d.Routes[0].Price = true, "0.01"
		}, []string{"routes[0].price"}},
	} {
		d := small()
		c.change(&d)
		if got := fieldsAtFault(t, d.Validate()); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Edges learn with a route's policy that its product speaks gRPC, and forget it, though
// the route says the same as before.
func TestPolicyFollowsTheProduct(t *testing.T) {
	t.Parallel()
	var m Policies
	keys := func(grpc bool) (keys []string) {
		d := small()
		d.Products[0].GRPC = grpc
		p, err := m.Policy(d, 1, "", Numbers{Scopes: map[string]int{"*": 0, "streams:*": 1, "streams:read": 2}, Plans: map[string]uint16{"free": 1}})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range p.Routes {
			keys = append(keys, r.Key())
		}
		return keys
	}
	without, with, again := keys(false), keys(true), keys(false)
	if with[0] != without[0]+" grpc" || !slices.Equal(with[1:], without[1:]) || !slices.Equal(again, without) {
		t.Errorf("%q, then %q, then %q", without, with, again)
	}
}
