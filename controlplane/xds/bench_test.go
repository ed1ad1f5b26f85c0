package xds

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/config"
)

// large is the default document with n routes and n/40 products more, of which
// one route differs with each variant.
func large(b *testing.B, n, variant int) config.Document {
	d := document(b)
	for i := range n / 40 {
		d.Products = append(d.Products, config.Product{Name: fmt.Sprintf("p%d", i), Upstreams: []config.Upstream{{Address: fmt.Sprintf("127.0.0.1:%d", 20000+i)}}})
	}
	for i := range n {
		path := fmt.Sprintf("/v1/bench%d/{id}/part%d", i/20, i)
		if i == 0 {
			path = fmt.Sprintf("/v1/bench/variant%d", variant)
		}
		d.Routes = append(d.Routes, config.Route{Name: fmt.Sprintf("bench.%d", i), Methods: []string{"GET"}, Path: path,
			Product: d.Products[3+i%(n/40)].Name, Auth: []string{"key"}, Scope: "streams:read"})
	}
	return d
}

// BenchmarkChangeReachesThreeEnvoys measures one changed route among 2,000,
// from Publish to the last edge's acceptance of the last step.
func BenchmarkChangeReachesThreeEnvoys(b *testing.B) {
	s, addr := newServer(b, Config{AckTimeout: time.Minute})
	publish(b, s, 1, large(b, 2000, 1))
	for range 3 {
		admin := startEnvoy(b, addr)
		poll(b, func() string { return gateway(admin) })
	}
	variants := []config.Document{large(b, 2000, 2), large(b, 2000, 3)}
	version := int64(1)
	for b.Loop() {
		version++
		publish(b, s, version, variants[version%2])
	}
	for _, e := range s.Edges() {
		if !e.Current {
			b.Errorf("%+v", e.Refusals)
		}
	}
}

// BenchmarkBuild measures what a replica spends on 2,000 routes by itself.
func BenchmarkBuild(b *testing.B) {
	s, _ := newServer(b, Config{})
	d := large(b, 2000, 1)
	for b.Loop() {
		if err := s.Check(d); err != nil {
			b.Fatal(err)
		}
	}
}
