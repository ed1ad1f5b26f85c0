package resources

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"
	"sluice.dev/sluice/controlplane/config"
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

// BenchmarkAddARoute measures what one more route costs a replica: the document
// is checked and compiled whole. What it costs for each byte of the route table
// must not grow with their number.
func BenchmarkAddARoute(b *testing.B) {
	for _, n := range []int{250, 500, 1000, 2000, 4000} {
		b.Run(fmt.Sprintf("routes=%d", n), func(b *testing.B) {
			d := large(b, n)
			numbers := config.ProvisionalNumbers(d)
			table := 0
			for b.Loop() {
				if err := d.Validate(); err != nil {
					b.Fatal(err)
				}
				p, err := d.Policy(1, "", numbers)
				if err != nil {
					b.Fatal(err)
				}
				s, err := Build(d, p, Options{Addresses: addresses})
				if err != nil {
					b.Fatal(err)
				}
				table = proto.Size(s.Routes[config.Gateway])
			}
			perOp := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			b.ReportMetric(float64(table), "table-bytes")
			b.ReportMetric(perOp/float64(table), "ns/table-byte")
		})
	}
}
