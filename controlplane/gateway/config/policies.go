package config

import (
	"reflect"
	"slices"
	"sync"

	"sluice.dev/sluice/filters/policy"
)

// Policies compiles documents that follow each other. It remembers the last one,
// so that only what was changed is compiled; a change that no edge's decisions go
// by, such as that of a path, gives the very policy of before. The zero value
// remembers nothing.
type Policies struct {
	mu   sync.Mutex
	last compiled
}

// compiled is a document with its policy. Neither is ever altered.
type compiled struct {
	document Document
	numbers  Numbers
	places   map[string]int // of routes, by name
	policy   *policy.Policy // nil: there is none
}

// Policy is d.Policy. The caller must not alter the result.
func (m *Policies) Policy(d Document, version uint64, docsBase string, n Numbers) (*policy.Policy, error) {
	m.mu.Lock()
	last := m.last
	m.mu.Unlock()
	p, err := d.general(version, docsBase, n)
	if err != nil {
		return nil, err
	}
	known := last.alike(d, n)
	p.Routes = make([]policy.Route, 0, len(d.Routes)+len(builtin))
	now := compiled{d, n, make(map[string]int, len(d.Routes)), p}
	checks, speakers := digests{}, d.grpcProducts()
	for i, r := range d.Routes {
		now.places[r.Name] = i
		// What requests must be depends on the product too.
		if at, ok := last.places[r.Name]; ok && known && !r.Checks() && last.document.Routes[at].Equal(r) {
			p.Routes = append(p.Routes, last.policy.Routes[at])
			continue
		}
		pr, err := d.routePolicy(r, n, checks)
		if err != nil {
			return nil, err
		}
		p.Routes = append(p.Routes, markGRPC(pr, speakers))
	}
	d.watch(p)
	p.Routes = append(append(p.Routes, policiesOfVersions(d.Routes, p.Routes)...), builtin...)
	if known && samePolicy(last.policy, p) {
		now.policy = last.policy
	} else if err := fits(p); err != nil {
		return p, err
	}
	m.mu.Lock()
	m.last = now
	m.mu.Unlock()
	return now.policy, nil
}

// alike reports whether routes of d become what they became in c.
func (c compiled) alike(d Document, n Numbers) bool {
	return c.policy != nil && reflect.DeepEqual(c.numbers, n) && slices.Equal(c.document.Classes, d.Classes) &&
		slices.Equal(c.document.grpcProducts(), d.grpcProducts()) && reflect.DeepEqual(c.document.X402, d.X402)
}

// samePolicy reports whether edges decide alike by a and b.
func samePolicy(a, b *policy.Policy) bool {
	if !slices.Equal(a.Routes, b.Routes) {
		return false
	}
	x, y := *a, *b
	x.Routes, y.Routes = nil, nil
	return reflect.DeepEqual(x, y)
}
