package telemetry

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// pool reads a pool's statistics when it is scraped.
type pool struct {
	stat                             func() *pgxpool.Stat
	connections, most, waits, waited *prometheus.Desc
}

// Pool returns a collector of p's connections.
func Pool(p *pgxpool.Pool) prometheus.Collector {
	return &pool{
		stat:        p.Stat,
		connections: prometheus.NewDesc("sluice_postgres_connections", "Connections of the pool, by state.", []string{"state"}, nil),
		most:        prometheus.NewDesc("sluice_postgres_connections_max", "How many the pool may have.", nil, nil),
		waits:       prometheus.NewDesc("sluice_postgres_acquires_waited_total", "Times that no connection was free.", nil, nil),
		waited:      prometheus.NewDesc("sluice_postgres_acquire_seconds_total", "Time spent to get connections.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (p *pool) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{p.connections, p.most, p.waits, p.waited} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (p *pool) Collect(out chan<- prometheus.Metric) {
	s := p.stat()
	gauge, counter := prometheus.GaugeValue, prometheus.CounterValue
	out <- prometheus.MustNewConstMetric(p.connections, gauge, float64(s.AcquiredConns()), "used")
	out <- prometheus.MustNewConstMetric(p.connections, gauge, float64(s.IdleConns()), "idle")
	out <- prometheus.MustNewConstMetric(p.connections, gauge, float64(s.ConstructingConns()), "opening")
	out <- prometheus.MustNewConstMetric(p.most, gauge, float64(s.MaxConns()))
	out <- prometheus.MustNewConstMetric(p.waits, counter, float64(s.EmptyAcquireCount()))
	out <- prometheus.MustNewConstMetric(p.waited, counter, s.AcquireDuration().Seconds())
}
