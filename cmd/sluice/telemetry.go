package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"sluice.dev/sluice/controlplane/gateway/xds/resources"
	"sluice.dev/sluice/platform/process/telemetry"
	"sluice.dev/sluice/platform/process/telemetry/traces"
)

// logs is how the processes log.
func (e environment) logs() (telemetry.LogConfig, error) {
	c, err := telemetry.ParseLog(e.get("SLUICE_LOG_FORMAT"), e.get("SLUICE_LOG_LEVEL"))
	if err != nil {
		return c, fmt.Errorf("SLUICE_LOG_FORMAT, SLUICE_LOG_LEVEL: %w", err)
	}
	return c, nil
}

// traces says where edges report traces to; nil: nowhere.
func (e environment) traces() (*resources.Traces, error) {
	endpoint := strings.TrimRight(e.get("SLUICE_OTLP_ENDPOINT"), "/")
	if endpoint == "" {
		return nil, nil
	}
	ratio, err := strconv.ParseFloat(e.get("SLUICE_TRACE_RATIO"), 64)
	if err != nil || !(ratio >= 0 && ratio <= 1) {
		return nil, fmt.Errorf("SLUICE_TRACE_RATIO is %q: expected a number from 0 to 1", e.get("SLUICE_TRACE_RATIO"))
	}
	return &resources.Traces{Endpoint: endpoint, Ratio: ratio}, nil
}

// tracer makes the spans of a process; nil when nothing is traced.
func (e environment) tracer(ctx context.Context, process string) (*traces.Tracer, error) {
	t, err := e.traces()
	if err != nil || t == nil {
		return nil, err
	}
	tracer, err := traces.New(ctx, traces.Config{Endpoint: t.Endpoint, Ratio: t.Ratio, Process: process, Version: version})
	if err != nil {
		return nil, fmt.Errorf("SLUICE_OTLP_ENDPOINT: %w", err)
	}
	return tracer, nil
}
