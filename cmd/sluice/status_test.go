package main

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/gateway/edgestatus"
	"sluice.dev/sluice/controlplane/gateway/status"
)

func TestShowStatus(t *testing.T) {
	t.Parallel()
	noon, failed := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), int64(4)
	seen := noon.Add(-3 * time.Second)
	r := status.Report{
		Time:      noon,
		Problems:  []status.Problem{{Part: "edges", What: "edge-2 is cached", Action: "Look at its log."}},
		Database:  status.Database{Version: "15.1", LatencyMS: .42, Bytes: 50 << 20, Connections: 7, ConnectionsMax: 100, Schema: 34},
		Processes: []status.Process{{Kind: "media", Build: "v1", Live: true}, {Kind: "worker", Build: "v1", Live: true}, {Kind: "worker", Build: "v2", Live: true}, {Kind: "worker", Build: "v0"}},
		Edges:     edgestatus.View{Version: 3, Data: []edgestatus.Edge{{Live: true, Current: true}, {Live: true, Feed: &edgestatus.Feed{Behind: 5}}, {}}},
		Queues:    []status.Queue{{Name: "webhooks", Waiting: 12, Oldest: .25}},
		Schedules: status.Schedules{Active: 9, Late: 1},
		Webhooks:  status.Webhooks{Failed: &failed, Endpoints: 20, Failing: 2, Disabled: 1},
		Usage:     status.Usage{LastParcel: &seen, SummedTo: noon.Add(-time.Hour)},
	}
	var out strings.Builder
	if err := showStatus(&out, r); err != nil {
		t.Fatal(err)
	}
	if want := `database   ok    PostgreSQL 15.1, 0.4 ms, 50 MB, 7 of 100 connections, schema 34
processes  ok    1 media, 2 worker (build v1 and v2)
edges      LOOK  2 live, 1 of them hold version 3, keys at most 5 changes behind
queues     ok    waiting: webhooks 12 (250ms)
schedules  ok    9 active, 1 late
webhooks   ok    20 endpoints, 2 failing, 1 disabled; 4 deliveries given up in the last hour
usage      ok    last from an edge 3s ago, summed up to 2026-11-21T11:00:00Z

edges: edge-2 is cached
  Look at its log.
`; out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	if err := showStatus(&out, status.Report{}); err != nil || !strings.Contains(out.String(), "no job waits") || !strings.Contains(out.String(), "too many to count") || !strings.Contains(out.String(), "none") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
