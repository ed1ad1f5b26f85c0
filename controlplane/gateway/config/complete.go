package config

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"sluice.dev/sluice/filters/scopes"
)

// What stands in a document that does not say otherwise.
const (
	DefaultClass     = "default"
	DefaultPerMinute = 600
	DefaultPlan      = "free"
)

// complete says what d leaves out, but for plans: see Expand. What is wrong stays
// as it is, for Faults to name. It takes time linear in d.
func (d Document) complete() Document {
	if d.Classes == nil {
		d.Classes = []Class{{Name: DefaultClass, PerMinute: DefaultPerMinute}}
	}
	if d.Certificates != nil {
		d.Certificates = each(d.Certificates, Certificate.complete)
	}
	d.Products = each(d.Products, Product.complete)
	d.Routes = each(d.Routes, Route.complete)
	if d.Scopes == nil {
		d.Scopes = []string{}
		for _, r := range d.Routes {
			if scopes.Valid(r.Scope) && !strings.HasSuffix(r.Scope, "*") {
				d.Scopes = append(d.Scopes, r.Scope)
			}
		}
		slices.Sort(d.Scopes)
		d.Scopes = slices.Compact(d.Scopes)
	}
	return d
}

// each returns what f makes of the elements of list.
func each[T any](list []T, f func(T) T) []T {
	list = slices.Clone(list)
	for i, v := range list {
		list[i] = f(v)
	}
	return list
}

// complete says who gets in: whoever shows a key.
func (r Route) complete() Route {
	if r.Auth == nil {
		r.Auth = []string{"key"}
	}
	return r
}

// complete puts what upstream stands for into the fields that it is short for.
func (p Product) complete() Product {
	address, u := shortAddress(p.Upstream)
	if address == "" || p.Upstreams != nil {
		return p
	}
	p.Upstream, p.Upstreams = "", []Upstream{{Address: address}}
	if p.Host == "" {
		p.Host = u.Host
	}
	if overTLS(u) && p.TLS == nil {
		p.TLS = &TLS{ServerName: u.Hostname()}
	}
	p.GRPC = p.GRPC || isGRPC(u)
	return p
}

// shortAddress is the host:port that an upstream such as http://10.0.0.1:3000
// stands for; "" when it is none. A certificate is for a name, so that https needs
// one.
func shortAddress(upstream string) (address string, u *url.URL) {
	u, err := url.Parse(upstream)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return "", nil
	}
	address = hostPort(u)
	if !ValidAddress(address) || overTLS(u) && net.ParseIP(u.Hostname()) != nil {
		return "", nil
	}
	return address, u
}

func hostPort(u *url.URL) string {
	port := u.Port()
	usual, known := map[string]string{"http": "80", "https": "443", "grpc": "80", "grpcs": "443"}[u.Scheme]
	if !known {
		return ""
	}
	if port == "" {
		port = usual
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// ValidUpstream reports whether s may be the upstream of a product.
func ValidUpstream(s string) bool {
	address, _ := shortAddress(s)
	return address != ""
}

// shortUpstream names what is wrong with an upstream that complete has left.
func (v *validator) shortUpstream(f string, p Product) {
	if p.Upstreams != nil {
		v.add(f, "stands beside upstreams", "one of the two")
		return
	}
	v.add(f, "is not an address", "http://HOST:PORT, https://NAME, grpc://HOST:PORT or grpcs://NAME; a path goes into a route's rewrite")
}
