package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/platform/process/pause"
)

// The states of an edge.
const (
	Starting = "starting" // it holds nothing yet
	Live     = "live"     // a replica confirms what it holds
	Cached   = "cached"   // no replica answers: it serves from what it holds
	Closed   = "closed"   // what it holds is too old to serve from
)

// Status is what the agent says of its edge; the wire form of a report.
type Status struct {
	Edge         string  `json:"edge"`
	Build        string  `json:"build"`
	State        string  `json:"state"`
	StateAge     float64 `json:"state_age_seconds"` // since a replica confirmed what it holds
	Uptime       float64 `json:"uptime_seconds"`
	EnvoyEpoch   int64   `json:"envoy_epoch"` // Envoys that were started before this one
	FeedEpoch    uint64  `json:"feed_epoch"`
	FeedPosition uint64  `json:"feed_position"`      // of Envoy
	Limits       string  `json:"limits"`             // how it limits: Shared, Share or Alone
	LimitsEdges  uint32  `json:"limits_edges"`       // that share limits, as far as it knows; 0: it does not
	LimitsAge    float64 `json:"limits_age_seconds"` // since it heard what the others have counted; -1: never
	// Outdated names files, Envoy's binary or filters, that were changed since the
	// Envoy that runs was started from them.
	Outdated []string `json:"outdated,omitempty"`
}

// Status returns the state of the edge now.
func (r *Relay) Status() Status {
	s := Status{Edge: r.cfg.Edge, Build: r.cfg.Build, State: r.state(), Uptime: r.cfg.Now().Sub(r.began).Seconds()}
	if r.cfg.Outdated != nil {
		s.Outdated = r.cfg.Outdated()
	}
	if r.staleness.known() {
		s.StateAge = r.staleness.age().Seconds()
	}
	s.Limits, s.LimitsEdges, s.LimitsAge = r.rateSync.status()
	r.mu.Lock()
	s.EnvoyEpoch = max(0, r.started-1)
	r.mu.Unlock()
	if e := r.newest(); e != nil {
		e.mu.Lock()
		s.FeedEpoch, s.FeedPosition = e.epoch, e.position
		e.mu.Unlock()
	}
	return s
}

func (r *Relay) state() string {
	switch {
	case r.staleness.fresh():
		return Live
	case !r.staleness.known():
		return Starting
	case r.staleness.tooOld():
		return Closed
	default:
		return Cached
	}
}

// lookEvery is how often it is looked whether the state has changed.
const lookEvery = 200 * time.Millisecond

// report tells a replica of each change of state, and everything else every
// Config.Report, until ctx ends. What no replica hears is said again later.
func (r *Relay) report(ctx context.Context) {
	var sent Status
	var sentAt time.Time
	for pause.For(ctx, lookEvery) {
		s := r.Status()
		same := s.State == sent.State && s.EnvoyEpoch == sent.EnvoyEpoch && s.Limits == sent.Limits && slices.Equal(s.Outdated, sent.Outdated)
		if same && r.cfg.Now().Sub(sentAt) < r.cfg.Report {
			continue
		}
		if !same {
			r.cfg.Log.Info("state of the edge", "state", s.State, "position", s.FeedPosition, "limits", s.Limits)
			if len(s.Outdated) > 0 {
				r.cfg.Log.Warn("Envoy runs with other files than are there now: SIGHUP lets one with those take over", "files", s.Outdated)
			}
		}
		sent, sentAt = s, r.cfg.Now()
		r.send(ctx, s)
	}
}

func (r *Relay) send(ctx context.Context, s Status) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	body, err := json.Marshal(s)
	if err != nil {
		return
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://replica"+edgeapi.ReportPath, bytes.NewReader(body))
	if err != nil {
		return
	}
	q.Header.Set("Content-Type", "application/json")
	res, err := r.upstreams.http.Do(q)
	if err != nil {
		r.cfg.Log.Debug("no replica took a report", "cause", err)
		return
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<10))
}

// Describe implements prometheus.Collector.
func (r *Relay) Describe(c chan<- *prometheus.Desc) {
	r.traffic.Describe(c)
	prometheus.DescribeByCollect(r, c)
}

// Collect implements prometheus.Collector: the state of the edge as the agent
// knows it, and its traffic.
func (r *Relay) Collect(c chan<- prometheus.Metric) {
	r.traffic.Collect(c)
	s := r.Status()
	gauge := func(name, help string, v float64) {
		c <- prometheus.MustNewConstMetric(prometheus.NewDesc("sluice_agent_"+name, help, nil, nil), prometheus.GaugeValue, v)
	}
	oneOf := func(name, label, help, now string, all ...string) {
		desc := prometheus.NewDesc("sluice_agent_"+name, help, []string{label}, nil)
		for _, v := range all {
			is := 0.0
			if v == now {
				is = 1
			}
			c <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, is, v)
		}
	}
	oneOf("state", "state", "1 for the state that the edge is in: cached means that no replica answers, closed that the edge serves nobody.", s.State, Starting, Live, Cached, Closed)
	oneOf("limits", "by", "1 for how the edge limits: share means that it is cut off from the others and keeps to a fair share.", s.Limits, Shared, Share, Alone)
	gauge("limits_edges", "Edges that share limits, as far as this one knows.", float64(s.LimitsEdges))
	gauge("limits_age_seconds", "Since the edge last heard what the others have counted; -1: never.", s.LimitsAge)
	gauge("limits_holders", "The edge may use 1 of so many of a strict limit when it is cut off; 0: nothing yet.", float64(r.rateSync.holders()))
	gauge("state_age_seconds", "Since a replica last confirmed what the edge holds.", s.StateAge)
	gauge("feed_position", "Position of the key feed that Envoy holds.", float64(s.FeedPosition))
	gauge("outdated_files", "Files that were changed since the present Envoy was started from them.", float64(len(s.Outdated)))
	gauge("envoy_epoch", "Envoys that were started before the present one.", float64(s.EnvoyEpoch))
}
