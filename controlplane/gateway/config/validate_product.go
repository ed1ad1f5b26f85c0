package config

import (
	"crypto/x509"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxUpstreams bounds the addresses of one product.
const maxUpstreams = 1000

func (v *validator) products(list []Product) map[string]bool {
	seen := map[string]bool{}
	v.atMost("products", len(list), maxProducts)
	for i, p := range list {
		f := fmt.Sprintf("products[%d]", i)
		v.name(f+".name", p.Name, seen)
		v.product(f, p)
		if p.Upstream != "" {
			v.shortUpstream(f+".upstream", p)
		} else if len(p.Upstreams) == 0 {
			v.add(f+".upstreams", "is empty", "at least one address")
		}
		if !v.atMost(f+".upstreams", len(p.Upstreams), maxUpstreams) {
			continue
		}
		for j, u := range p.Upstreams {
			v.upstream(fmt.Sprintf("%s.upstreams[%d]", f, j), u)
		}
	}
	return seen
}

func (v *validator) product(f string, p Product) {
	v.duration(f+".connect_timeout", p.ConnectTimeout)
	v.duration(f+".idle_timeout", p.IdleTimeout)
	v.duration(f+".try_timeout", p.TryTimeout)
	if p.Retries != nil && *p.Retries > 10 {
		v.add(f+".retries", "is too large", "at most 10")
	}
	for i, status := range p.RetryOn {
		if !retriable(status) {
			v.add(fmt.Sprintf("%s.retry_on[%d]", f, i), "is not a status that a retry helps with", "408, 425, 429 or 500 to 599")
		}
	}
	v.health(f, p)
	v.outliers(f+".outliers", p.Outliers)
	v.host(f+".host", p.Host)
	v.tls(f+".tls", p.TLS)
	v.cors(f+".cors", p.CORS)
	v.schemas(f+".schemas", p.Schemas)
}

func (v *validator) health(f string, p Product) {
	if p.HealthPath != "" && !strings.HasPrefix(p.HealthPath, "/") {
		v.add(f+".health_path", "must begin with /", "")
	}
	h := p.Health
	if h == nil {
		return
	}
	if p.HealthPath != "" {
		v.add(f+".health_path", "stands beside health", "one of the two")
	}
	v.healthOf(f+".health", p, *h)
	v.host(f+".health.host", h.Host)
	v.duration(f+".health.interval", h.Interval)
	v.duration(f+".health.timeout", h.Timeout)
	v.upTo(f+".health.healthy", h.Healthy, 100)
	v.upTo(f+".health.unhealthy", h.Unhealthy, 100)
}

func (v *validator) outliers(f string, o Outliers) {
	v.upTo(f+".failures", o.Failures, 1000)
	v.upTo(f+".server_errors", o.ServerErrors, 1000)
	v.upTo(f+".max_percent", o.MaxPercent, 100)
	v.duration(f+".interval", o.Interval)
	v.duration(f+".ejection", o.Ejection)
}

func (v *validator) upTo(field string, n, most uint32) {
	if n > most {
		v.add(field, "is too large", fmt.Sprintf("at most %d", most))
	}
}

func (v *validator) upstream(f string, u Upstream) {
	if !addrForm.MatchString(u.Address) && !ValidAddress(u.Address) {
		v.add(f+".address", "is not an address", "host:port or ${name}")
	}
	v.upTo(f+".weight", u.Weight, 1000)
}

var hostForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)

// ValidAddress reports whether s is host:port, as in a product's upstreams.
func ValidAddress(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil || (net.ParseIP(host) == nil && !hostForm.MatchString(host)) {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// host checks what may stand in a Host header; empty is fine.
func (v *validator) host(field, s string) {
	if s != "" && !hostForm.MatchString(s) && !ValidAddress(s) {
		v.add(field, "is not a host", "such as api.example.com")
	}
}

func (v *validator) tls(f string, t *TLS) {
	if t == nil {
		return
	}
	if !hostForm.MatchString(t.ServerName) {
		v.add(f+".server_name", "is missing or not a name", "the name in the product's certificate")
	}
	if t.CA != "" && t.CAFile != "" {
		v.add(f+".ca_file", "stands beside ca", "one of the two")
	}
	if t.CA != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(t.CA)) {
		v.add(f+".ca", "has no certificate in it", "PEM")
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		v.add(f+".cert_file", "stands alone", "cert_file and key_file, or neither")
	}
	for field, name := range map[string]string{"ca_file": t.CAFile, "cert_file": t.CertFile, "key_file": t.KeyFile} {
		if name != "" && (!filepath.IsAbs(name) || len(name) > 512 || name != filepath.Clean(name)) {
			v.add(f+"."+field, "is not the path of a file", "a whole path on the edge's machine, such as /etc/sluice/ca.pem")
		}
	}
}

var originForm = regexp.MustCompile(`^https?://(\*\.)?[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:[0-9]{1,5})?$`)

var headerForm = regexp.MustCompile(`^[A-Za-z0-9-]{1,100}$`)

func (v *validator) cors(f string, c *CORS) {
	if c == nil {
		return
	}
	for i, o := range v.within(f+".origins", c.Origins, 100) {
		if o != "*" && !originForm.MatchString(o) {
			v.add(fmt.Sprintf("%s.origins[%d]", f, i), "is not an origin", "such as https://app.example.com, https://*.example.com or *")
		}
	}
	if c.Credentials && slices.Contains(c.Origins, "*") {
		v.add(f+".credentials", "stands beside the origin *", "named origins: any page could act for its visitors")
	}
	for name, list := range map[string][]string{"headers": c.Headers, "expose": c.Expose} {
		for i, h := range v.within(f+"."+name, list, 100) {
			if !headerForm.MatchString(h) {
				v.add(fmt.Sprintf("%s.%s[%d]", f, name, i), "is not the name of a header", "letters, digits and dashes")
			}
		}
	}
	v.duration(f+".max_age", c.MaxAge)
}

// words checks names that nothing else defines.
func (v *validator) words(f string, list []string) {
	for i, s := range v.within(f, list, 100) {
		if !nameForm.MatchString(s) || slices.Contains(list[:i], s) {
			v.add(fmt.Sprintf("%s[%d]", f, i), "is not a name, or is given twice", "1 to 100 of a-z, 0-9, dot, dash and underscore")
		}
	}
}
