package discovery

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/decision"
)

// HealthStatus is what a backend was found to be like.
type HealthStatus string

// The states of health.
const (
	OK      HealthStatus = "ok"
	Failing HealthStatus = "failing"
	Unknown HealthStatus = "unknown" // it has no health to ask for, or asks for TLS, which edges speak
)

// Report is what a backend says of itself, at its health path or /health:
//
//	{"surfaces": {"rtmp": "available", "voice": "needs_engine"}}
//
// Surfaces that it does not name are as its routes say.
type Report struct {
	Status   HealthStatus
	Surfaces map[string]string
	Engines  map[string]Engine // by surface
}

// Engine is what does the work of a surface, as its backend says:
//
//	{"engines": {"voice": {"use": "builtin", "health": "ok", "version": "…"}}}
type Engine struct {
	Use     string       `json:"use"` // builtin or url; off; empty: there is none
	Health  HealthStatus `json:"health"`
	Version string       `json:"version,omitempty"`
}

const (
	probeTimeout = time.Second
	probeAge     = 5 * time.Second // how long a report is used
	maxReport    = 64 << 10
	maxVersion   = 100 // bytes of an engine's
	maxBackends  = 64  // asked; those beyond are unknown
	maxAddresses = 4   // of one backend that are asked
)

// Prober asks backends how they are, at most every few seconds.
type Prober struct {
	// Addresses returns the addresses of an upstream as the control plane reaches
	// it: host:port each, or none when it does not.
	Addresses func(upstream string) []string
	Client    *http.Client     // nil: one that follows nothing
	Now       func() time.Time // nil: time.Now

	mu      sync.Mutex
	reports map[string]Report
	version int64
	asked   time.Time
}

// Reports returns what the backends of v are like, by name.
func (p *Prober) Reports(ctx context.Context, v config.Version) map[string]Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.Now != nil {
		now = p.Now()
	}
	if p.reports == nil || p.version != v.Number || now.Sub(p.asked) >= probeAge {
		p.reports, p.version, p.asked = p.ask(ctx, v.Document.Products), v.Number, now
	}
	return p.reports
}

// ask asks all backends at once.
func (p *Prober) ask(ctx context.Context, products []config.Product) map[string]Report {
	// Whoever waits is not the only one who is told.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
	defer cancel()
	reports := make([]Report, len(products))
	var wg sync.WaitGroup
	for i, product := range products {
		reports[i] = Report{Status: Unknown}
		if i < maxBackends && len(product.Upstreams) > 0 && product.TLS == nil && !product.GRPC && product.Name != Placeholder {
			wg.Go(func() { reports[i] = p.probe(ctx, product) })
		}
	}
	wg.Wait()
	all := map[string]Report{}
	for i, product := range products {
		if product.Name != Placeholder {
			all[product.Name] = reports[i]
		}
	}
	return all
}

// probe asks one backend, at its first addresses: it is as well as the best of
// them.
func (p *Prober) probe(ctx context.Context, product config.Product) Report {
	path := product.HealthPath
	if path == "" {
		path = "/health"
	}
	var addresses []string
	for _, u := range product.Upstreams[:min(maxAddresses, len(product.Upstreams))] {
		addresses = append(addresses, p.Addresses(u.Address)...)
	}
	reports := make([]Report, min(maxAddresses, len(addresses)))
	var wg sync.WaitGroup
	for i := range reports {
		wg.Go(func() { reports[i] = p.probeAt(ctx, addresses[i], path) })
	}
	wg.Wait()
	return best(reports)
}

// best is the first of the best reports; unknown when there is none.
func best(reports []Report) Report {
	for _, status := range []HealthStatus{OK, Unknown, Failing} {
		if i := slices.IndexFunc(reports, func(r Report) bool { return r.Status == status }); i >= 0 {
			return reports[i]
		}
	}
	return Report{Status: Unknown}
}

func (p *Prober) probeAt(ctx context.Context, address, path string) Report {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return Report{Status: Unknown}
	}
	client := p.Client
	if client == nil {
		client = plain
	}
	res, err := client.Do(req)
	if err != nil {
		return Report{Status: Failing}
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusOK:
		return read(res.Body)
	case res.StatusCode >= 500:
		return Report{Status: Failing}
	}
	return Report{Status: Unknown}
}

// read returns what a backend says about surfaces and their engines, as far as it is
// known words.
func read(body io.Reader) Report {
	var said struct {
		Surfaces map[string]string `json:"surfaces"`
		Engines  map[string]Engine `json:"engines"`
	}
	if err := json.NewDecoder(io.LimitReader(body, maxReport)).Decode(&said); err != nil {
		return Report{Status: OK}
	}
	for name, word := range said.Surfaces {
		if word != Available && word != NeedsEngine {
			delete(said.Surfaces, name)
		}
	}
	for name, e := range said.Engines {
		known := slices.Contains([]HealthStatus{OK, Failing, Unknown}, e.Health) && slices.Contains([]string{"", "off", "builtin", "url"}, e.Use)
		if e.Version = decision.Cut(e.Version, maxVersion); !known {
			delete(said.Engines, name)
		} else {
			said.Engines[name] = e
		}
	}
	return Report{OK, said.Surfaces, said.Engines}
}

// plain follows no redirect and asks no proxy.
var plain = &http.Client{
	Transport:     &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// overall is the worst health of some backends.
func overall(backends []string, health map[string]Report) string {
	worst := OK
	for _, b := range backends {
		switch health[b].Status {
		case Failing:
			return string(Failing)
		case OK:
		default:
			worst = Unknown
		}
	}
	if len(backends) == 0 {
		worst = Unknown
	}
	return strings.Clone(string(worst))
}
