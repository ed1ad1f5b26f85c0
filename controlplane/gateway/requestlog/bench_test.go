package requestlog

import (
	"crypto/rand"
	"fmt"
	"testing"

	"sluice.dev/sluice/filters/edgeapi"
)

// What it costs to store a batch, in rows a second, and a row, in bytes with its part
// of the indexes.
func BenchmarkAdd(b *testing.B) {
	s := setup(b)
	at := func(n int64) *int64 { return &n }
	stored := 0
	for b.Loop() {
		var list []Request
		for i := range edgeapi.MaxRequestBatch {
			r := s.request(rand.Text(), fmt.Sprintf("acct_%013d", stored%1000+i), 404)
			r.Edge, r.Host, r.Path, r.PathTemplate, r.Route, r.Product, r.Class = "edge-1", "api.example.com", "/v1/orders/ord_0000000000001", "/v1/orders/{id}", "orders.get", "shop", "default"
			r.Key, r.Plan, r.Scopes, r.Protocol, r.Detail, r.Upstream, r.Client = "key_0000000000001", "pro", []string{"orders:read", "orders:write"}, "HTTP/1.1", viaUpstream, "10.0.0.7:8080", "192.0.2.17"
			r.UserAgent, r.BytesOut, r.Attempts = "python-requests/2.32.3", 512, 1
			r.Timings = edgeapi.Timings{Received: at(60), Forwarded: at(310), FirstByte: at(4210), Answered: at(4300), Total: 4350}
			list = append(list, r)
		}
		taken, err := s.Add(b.Context(), "edge-1", list, nil)
		if err != nil {
			b.Fatal(err)
		}
		if stored += int(taken.Stored); taken.Stored == 0 {
			b.Fatal("the slot is full")
		}
	}
	var size int64
	if err := s.DB.QueryRow(b.Context(), `SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits WHERE inhparent = 'request_log'::regclass`).Scan(&size); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(stored)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(size)/float64(stored), "bytes/row")
}
