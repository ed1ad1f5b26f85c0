package edgestatus

import (
	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/controlplane/gateway/xds"
)

// metrics read the edges of one replica when they are asked for.
type metrics struct {
	source                     Source
	connected, current, behind *prometheus.Desc
	refusals                   *prometheus.Desc
}

// Metrics returns a collector of the edges that one replica serves: summed over
// replicas, the fleet. After an edge has moved, both replicas show it for an
// hour, one as connected.
func Metrics(source Source) prometheus.Collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("sluice_edge_"+name, help, []string{"edge"}, nil)
	}
	return metrics{source,
		desc("connected", "1 while the edge has a stream to this replica."),
		desc("current", "1 if the edge holds all that this replica has published."),
		desc("versions_behind", "Newest version less the newest that the edge held whole."),
		desc("refusals", "Types of resources whose last update the edge refused."),
	}
}

// Describe implements prometheus.Collector.
func (m metrics) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.connected, m.current, m.behind, m.refusals} {
		c <- d
	}
}

// Collect implements prometheus.Collector.
func (m metrics) Collect(c chan<- prometheus.Metric) {
	for _, e := range m.source.Edges() {
		m.edge(c, e)
	}
}

func (m metrics) edge(c chan<- prometheus.Metric, e xds.EdgeStatus) {
	gauge := func(d *prometheus.Desc, v float64) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, e.ID)
	}
	gauge(m.connected, number(e.Connected))
	if !e.Connected {
		return
	}
	gauge(m.current, number(e.Current))
	gauge(m.behind, float64(e.Wanted-e.Held))
	gauge(m.refusals, float64(len(e.Refusals)))
}

// number is 1 for true.
func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
