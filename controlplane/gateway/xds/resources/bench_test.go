package resources

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"
	"sluice.dev/sluice/controlplane/gateway/config"
)

// large is a document with n routes of fifty products.
func large(b *testing.B, n int) config.Document {
	b.Helper()
	d := defaults(b)
	for i := range 50 {
		d.Products = append(d.Products, config.Product{Name: fmt.Sprintf("p%d", i), Upstreams: []config.Upstream{{Address: fmt.Sprintf("10.0.0.%d:80", i)}}})
	}
	for i := range n {
		d.Routes = append(d.Routes, config.Route{Name: fmt.Sprintf("bench.%d", i), Methods: []string{"GET"}, Path: fmt.Sprintf("/v1/bench%d/{id}/part%d", i/20, i),
			Product: fmt.Sprintf("p%d", i%50), Auth: []string{"key"}, Scope: "streams:read"})
	}
	return d
}

// BenchmarkAddARoute measures what one more route costs a replica. What it costs for
// each byte of the route table must not grow with their number.
//
//	whole  the document is checked and compiled as if there had been none before
//	next   what was there before is remembered
func BenchmarkAddARoute(b *testing.B) {
	for _, n := range []int{250, 500, 1000, 2000, 4000} {
		with := large(b, n)
		without := with
		without.Routes = with.Routes[:len(with.Routes)-1]
		compile := func(d config.Document, c *config.Checker, m *config.Policies, s *Builder) int {
			if faults := c.Faults(d); len(faults) > 0 {
				b.Fatal(faults)
			}
			p, err := m.Policy(d, 1, "", config.ProvisionalNumbers(d))
			if err != nil {
				b.Fatal(err)
			}
			set, err := s.Build(d, p)
			if err != nil {
				b.Fatal(err)
			}
			return proto.Size(set.Routes[config.Gateway])
		}
		fresh := func() *Builder { return NewBuilder(Options{Addresses: addresses}) }
		b.Run(fmt.Sprintf("whole/routes=%d", n), func(b *testing.B) {
			table := 0
			for b.Loop() {
				table = compile(with, &config.Checker{}, &config.Policies{}, fresh())
			}
			perByte(b, table)
		})
		b.Run(fmt.Sprintf("next/routes=%d", n), func(b *testing.B) {
			var c config.Checker
			var m config.Policies
			s, table := fresh(), 0
			both := [...]config.Document{with, without}
			for i := 0; b.Loop(); i++ {
				table = compile(both[i%2], &c, &m, s)
			}
			perByte(b, table)
		})
	}
}

// perByte reports the time for each byte of a route table.
func perByte(b *testing.B, table int) {
	b.ReportMetric(float64(table), "table-bytes")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(table), "ns/table-byte")
}
