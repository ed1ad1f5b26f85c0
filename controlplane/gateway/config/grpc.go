package config

import (
	"net/url"
	"slices"
	"strings"

	"sluice.dev/sluice/filters/policy"
)

// SpeaksHTTP2 reports whether edges speak HTTP/2 with the product.
func (p Product) SpeaksHTTP2() bool { return p.HTTP2 || p.GRPC }

// HasGRPC reports whether some product of d speaks gRPC.
func (d Document) HasGRPC() bool { return d.grpcProducts() != nil }

// grpcProducts are the names of the products that speak gRPC, sorted.
func (d Document) grpcProducts() (names []string) {
	for i := range d.Products {
		if d.Products[i].GRPC {
			names = append(names, d.Products[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// markGRPC marks the policy of a route if its product is one of those that speak gRPC.
func markGRPC(r policy.Route, speakers []string) policy.Route {
	if _, ok := slices.BinarySearch(speakers, r.Product); ok {
		r.Revision = policy.GRPCRevision(r.Revision)
	}
	return r
}

// overTLS reports whether the scheme of an upstream is one of those with TLS.
func overTLS(u *url.URL) bool { return u.Scheme == "https" || u.Scheme == "grpcs" }

// isGRPC reports whether the scheme of an upstream is one of gRPC.
func isGRPC(u *url.URL) bool { return u.Scheme == "grpc" || u.Scheme == "grpcs" }

// maxService bounds the name of a gRPC service, in bytes.
const maxService = 200

// healthOf checks what a health check asks for: a path or a gRPC service.
func (v *validator) healthOf(f string, p Product, h Health) {
	switch {
	case h.GRPC == nil:
		if !strings.HasPrefix(h.Path, "/") {
			v.add(f+".path", "must begin with /", "")
		}
	case h.Path != "":
		v.add(f+".grpc", "stands beside path", "one of the two")
	case !p.SpeaksHTTP2():
		v.add(f+".grpc", "is asked of a product that speaks HTTP/1.1", "grpc: true, or upstream: grpc://HOST:PORT")
	case len(*h.GRPC) > maxService || !plainSegment(*h.GRPC):
		v.add(f+".grpc", "is not the name of a service", `such as orders.v1.Orders, or "" for the whole server`)
	}
}
