package app

import (
	"context"

	"sluice.dev/sluice/envoy"
	"sluice.dev/sluice/envoy/logpipe"
	"sluice.dev/sluice/envoy/relay"
	"sluice.dev/sluice/envoy/requestlog"
)

// recordRequests stands between what Envoy writes and the log: it has the agent send
// what happened to requests to the control plane. edge returns nil until Envoy is made.
func recordRequests(name string, agent *relay.Relay, edge func() *envoy.Edge, lines *logpipe.Pipe) *requestlog.Writer {
	return &requestlog.Writer{Print: lines, Record: requestlog.New(requestlog.Config{
		Edge: name, Send: agent.SendRequests,
		SetSample: func(ctx context.Context, s requestlog.Sample) error {
			if e := edge(); e != nil {
				return e.SampleRequests(ctx, s.Success, s.Failure)
			}
			return nil
		},
	})}
}
