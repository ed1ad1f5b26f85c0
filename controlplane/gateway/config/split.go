package config

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/filters/policy"
)

// ProductVersion is a product that gets a part of a route's requests: a share of all of them,
// or those that have some headers.
type ProductVersion struct {
	Product string `json:"product"`
	// Weight is how many of a hundred requests it gets. The route's product gets the rest.
	Weight *uint32 `json:"weight,omitempty"`
	// Headers, all of which must match, choose requests in place of a weight.
	Headers []HeaderMatch `json:"headers,omitempty"`
}

// Mirror is a product that gets copies of a route's requests. Nobody waits for its
// answers, and nobody gets them.
type Mirror struct {
	Product string  `json:"product"`
	Percent *uint32 `json:"percent,omitempty"` // of requests; absent: 100
	// Identity lets the header go along that says who calls, as the route's product
	// gets it. Credentials and cookies never do.
	Identity bool `json:"identity,omitempty"`
}

// StickyCredential is what Route.Sticky may be.
const StickyCredential = "credential"

const (
	maxVersions = 10
	// maxStickyBounds bounds the different shares of sticky routes: edges hold a list
	// of routes for each.
	maxStickyBounds = 16
)

// Share is a part of a hundred: from From up to, and without, To.
type Share struct{ From, To uint32 }

// Shares are those of r's split by weight, in its order. The route's own product has
// what is below them, so that what a version has it keeps while its weight grows.
// own is the size of that.
func (r Route) Shares() (shares []Share, own uint32) {
	shares, own = make([]Share, len(r.Split)), 100
	for i, v := range r.Split {
		if v.Weight != nil && *v.Weight <= own {
			shares[i] = Share{own - *v.Weight, own}
			own -= *v.Weight
		}
	}
	return shares, own
}

// Versions are the products besides its own that r forwards to, each once.
func (r Route) Versions() (names []string) {
	for _, v := range r.Split {
		if v.Product != r.Product && !slices.Contains(names, v.Product) {
			names = append(names, v.Product)
		}
	}
	return names
}

// Products are all that r's requests may reach, copies included; none: the edge answers.
func (r Route) Products() []string {
	if r.Product == "" {
		return nil
	}
	names := append([]string{r.Product}, r.Versions()...)
	if r.Mirror != nil && !slices.Contains(names, r.Mirror.Product) {
		names = append(names, r.Mirror.Product)
	}
	return names
}

// split checks what a route says of versions of its product.
func (v *validator) split(f string, r Route) {
	if r.Sticky != "" {
		v.oneOf(f+".sticky", r.Sticky, StickyCredential)
		if len(r.Split) == 0 {
			v.add(f+".sticky", "stands on a route without split", "split, or no sticky")
		}
	}
	if len(r.Split) > 0 && r.Product == "" {
		v.add(f+".split", "stands on a route without a product", "a product, which gets the rest")
	}
	if !v.atMost(f+".split", len(r.Split), maxVersions) {
		return
	}
	sum, weighed := uint64(0), map[string]bool{}
	for i, version := range r.Split {
		at := fmt.Sprintf("%s.split[%d]", f, i)
		switch {
		case version.Weight != nil && len(version.Headers) > 0:
			v.add(at+".headers", "stands beside weight", "one of the two, or two elements of split")
		case version.Weight == nil && len(version.Headers) == 0:
			v.add(at+".weight", "is missing", "0 to 100, or headers")
		case version.Weight != nil && version.Product == r.Product:
			v.add(at+".product", "is the route's own, which gets the rest", "another product")
		case version.Weight != nil && weighed[version.Product]:
			v.add(at+".product", "is given twice", "one weight for each product")
		}
		if version.Weight != nil {
			sum += uint64(*version.Weight)
			weighed[version.Product] = true
		}
		if v.atMost(at+".headers", len(version.Headers), maxHeaders) {
			for j, h := range version.Headers {
				v.headerMatch(fmt.Sprintf("%s.headers[%d]", at, j), h)
			}
		}
	}
	if sum > 100 {
		v.add(f+".split", fmt.Sprintf("has weights that make %d together", sum), "at most 100: the route's product gets the rest")
	}
}

// mirror checks who gets copies of a route's requests.
func (v *validator) mirror(f string, r Route) {
	m := r.Mirror
	if m == nil {
		return
	}
	switch {
	case r.Product == "":
		v.add(f, "stands on a route without a product", "a product")
	case m.Product == r.Product || slices.Contains(r.Versions(), m.Product):
		v.add(f+".product", "gets the route's requests anyway", "another product: it would serve them twice")
	case r.Streaming:
		v.add(f, "stands on a streaming route", "a route with a timeout: nothing would end the copies")
	case len(r.Upgrades) > 0:
		v.add(f, "stands on a route with upgrades", "a route without: a copy has nobody to talk to")
	}
	if m.Percent != nil {
		v.upTo(f+".percent", *m.Percent, 100)
	}
}

// splits checks the splits of all routes against the document.
func (v *validator) splits(list []Route, products map[string]bool) {
	versions, bounds := 0, map[uint32]bool{}
	for i, r := range list {
		if len(r.Split) > maxVersions {
			continue // a fault of its own
		}
		versions += len(r.Versions())
		for j, version := range r.Split {
			if !products[version.Product] {
				v.add(fmt.Sprintf("routes[%d].split[%d].product", i, j), "is not a known product", "a name from products")
			}
		}
		if r.Mirror != nil && !products[r.Mirror.Product] {
			v.add(fmt.Sprintf("routes[%d].mirror.product", i), "is not a known product", "a name from products")
		}
		if shares, _ := r.Shares(); r.Sticky != "" {
			before := len(bounds)
			for _, s := range shares {
				bounds[s.From], bounds[s.To] = true, true
			}
			if before <= maxStickyBounds && len(bounds) > maxStickyBounds {
				v.add(fmt.Sprintf("routes[%d].split", i), "makes too many different shares of sticky routes", fmt.Sprintf("the same weights as other routes: at most %d bounds in all", maxStickyBounds))
			}
		}
	}
	if versions > 0 {
		v.atMost("routes", len(list)+versions, policy.MaxRoutes-len(reserved))
	}
}
