package main

import (
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/limits/meter"
	"sluice.dev/sluice/filters/limits/traffic"
)

// counts is one kind of what workers hand over and keysync sends in parcels P.
type counts[P any] struct {
	queue wasmhost.Queue
	path  string
	batch func(requests int) []byte
	parse func(body []byte) (p P, requests uint64, ok bool)
}

var usageCounts = counts[meter.Parcel]{
	wasmhost.Usage, edgeapi.UsagePath,
	func(n int) []byte {
		table := meter.NewTable()
		for range n {
			table.Add(meter.Key{Account: 1, Class: 2}, meter.Request{})
		}
		return meter.Append(nil, table, &meter.Names{}, &meter.Uses{}, 1000)
	},
	func(body []byte) (p meter.Parcel, requests uint64, ok bool) {
		p, batches, ok := meter.ParseParcel(body)
		for _, b := range batches {
			requests += b.Counts[0].Requests
		}
		return p, requests, ok
	},
}

var trafficCounts = counts[traffic.Parcel]{
	wasmhost.Traffic, edgeapi.TrafficPath,
	func(n int) []byte {
		table := traffic.NewTable()
		for range n {
			table.Add(traffic.Key{Class: 2, Passed: true}, traffic.Request{})
		}
		return traffic.Append(nil, table, &meter.Names{}, &traffic.Reasons{})
	},
	func(body []byte) (p traffic.Parcel, requests uint64, ok bool) {
		p, cells, ok := traffic.ParseParcel(body)
		for _, cell := range cells {
			requests += cell.Requests
		}
		return p, requests, ok
	},
}

// handOver puts a batch of n requests into the queue as a worker does.
func (c counts[P]) handOver(t *testing.T, n int) {
	t.Helper()
	c.enqueue(t, c.batch(n))
}

func (c counts[P]) enqueue(t *testing.T, raw []byte) {
	t.Helper()
	queue, ok := c.queue.Find(0) // the clock of the module's host stands in the past
	if !ok {
		t.Fatal("no queue is offered")
	}
	if err := proxywasm.EnqueueSharedQueue(queue, raw); err != nil {
		t.Fatal(err)
	}
}

// sent is the last of the n parcels that were sent.
func (c counts[P]) sent(t *testing.T, h *host, n int) (call uint32, p P, requests uint64) {
	t.Helper()
	sent := h.to(t, c.path, n)[n-1]
	p, requests, ok := c.parse(sent.body)
	if !ok || sent.headers["authorization"] != "Bearer t0" {
		t.Fatalf("%v: %x is no parcel", sent.headers, sent.body)
	}
	return sent.id, p, requests
}

func metric(t *testing.T, h *host, name string) uint64 {
	t.Helper()
	n, err := h.GetCounterMetric(name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
