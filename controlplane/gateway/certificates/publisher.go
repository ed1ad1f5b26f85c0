package certificates

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/controlplane/gateway/xds/resources"
)

const (
	// reloadEvery is how often a replica looks for certificates that were not announced.
	reloadEvery = 30 * time.Second
	// loadAgain is the pause after the database failed.
	loadAgain = time.Second
)

// Publisher hands certificates to the edges of this replica, as soon as they are in
// the database, whichever replica put them there.
type Publisher struct {
	Store Store
	Heard <-chan struct{} // has a value when something was announced on Channel: see listen.Listener
	// Serve makes secrets, by host, those that edges have.
	Serve func(context.Context, map[string]*tls.Secret) error
	Log   *slog.Logger // nil: slog.Default

	mu     sync.Mutex
	served map[string]served // by name
	shown  []Certificate     // for metrics
}

// served is what edges have of a certificate.
type served struct {
	fingerprint string
	from        time.Time
	secrets     map[string]*tls.Secret // by host
}

func (p *Publisher) log() *slog.Logger { return cmp.Or(p.Log, slog.Default()) }

// Run publishes until ctx ends. While the database is away, what was published last
// stays in force.
func (p *Publisher) Run(ctx context.Context) {
	for ctx.Err() == nil {
		wait := reloadEvery
		if err := p.Load(ctx); err != nil && ctx.Err() == nil {
			wait = loadAgain
			p.log().Error("publish certificates", "cause", err)
		}
		select {
		case <-ctx.Done():
		case <-p.Heard:
		case <-time.After(wait):
		}
	}
}

// Load publishes what is in the database. Chains and keys of certificates that have not
// changed are not read. One that cannot be opened stays as it was at edges, or is left
// out; the others are not held up by it.
func (p *Publisher) Load(ctx context.Context) error {
	list, err := p.Store.List(ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	before := p.served
	p.mu.Unlock()
	all := map[string]served{}
	for _, c := range list {
		if c.Fingerprint == nil {
			continue
		}
		was, had := before[c.Name]
		s := was
		if !had || was.fingerprint != *c.Fingerprint {
			if s, err = p.Store.open(ctx, c.Name); err != nil {
				p.log().Error("a certificate cannot be read", "name", c.Name, "cause", err)
				if s = was; !had {
					continue
				}
			}
		}
		all[c.Name] = s
	}
	secrets := byHost(all)
	if err := p.Serve(ctx, secrets); err != nil {
		return err
	}
	p.mu.Lock()
	p.served, p.shown = all, list
	p.mu.Unlock()
	return nil
}

// byHost are the secrets of all hosts. Of two certificates for a host the newer one is
// shown.
func byHost(all map[string]served) map[string]*tls.Secret {
	secrets, from := map[string]*tls.Secret{}, map[string]time.Time{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		for host, secret := range s.secrets {
			if secrets[host] == nil || s.from.After(from[host]) {
				secrets[host], from[host] = secret, s.from
			}
		}
	}
	return secrets
}

// open reads one for edges, by one statement: chain and key are of the same moment.
func (s Store) open(ctx context.Context, name string) (out served, err error) {
	var chain string
	var sealed []byte
	err = s.DB.QueryRow(ctx, `SELECT fingerprint, chain, private_key FROM certificates WHERE name = $1 AND chain IS NOT NULL`, name).Scan(&out.fingerprint, &chain, &sealed)
	if err != nil {
		return out, err
	}
	key, err := s.Box.Open(sealed, rowOf(name))
	if err != nil {
		return out, err
	}
	p, err := ReadPair([]byte(chain), key, time.Time{})
	if err != nil {
		return out, err
	}
	out.from, out.secrets = p.Leaf.NotBefore, map[string]*tls.Secret{}
	for _, host := range p.Hosts {
		out.secrets[host] = resources.CertificateSecret(host, p.Chain, p.Key)
	}
	return out, nil
}

var (
	expiresMetric = prometheus.NewDesc("sluice_certificate_expires_seconds", "Time until a certificate that edges show expires; below zero: it has.", []string{"certificate", "source"}, nil)
	failedMetric  = prometheus.NewDesc("sluice_certificate_failed_attempts", "Attempts to get or renew a certificate that have failed since the last that succeeded.", []string{"certificate"}, nil)
)

// Describe implements prometheus.Collector.
func (p *Publisher) Describe(out chan<- *prometheus.Desc) {
	out <- expiresMetric
	out <- failedMetric
}

// Collect implements prometheus.Collector.
func (p *Publisher) Collect(out chan<- prometheus.Metric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.shown {
		if c.NotAfter != nil {
			out <- prometheus.MustNewConstMetric(expiresMetric, prometheus.GaugeValue, c.NotAfter.Sub(p.Store.now()).Seconds(), c.Name, c.Source)
		}
		if c.Source == SourceACME {
			out <- prometheus.MustNewConstMetric(failedMetric, prometheus.GaugeValue, float64(c.Attempts), c.Name)
		}
	}
}
