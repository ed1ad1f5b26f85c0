package xds

import (
	"context"
	"errors"
	"fmt"
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/xds/resources"
	"sluice.dev/sluice/filters/policy"
	"sluice.dev/sluice/platform/apierror"
)

// Publish makes d, as the given version, what edges are served. What is at fault
// in d is left out or closed, as config.Document.Usable says; it returns an
// error, and changes nothing, when that leaves nothing to serve. A version that is
// older than the present one is ignored, and so is the present one, unless routes
// of it are still to ask for scopes (config.Numbers.Waiting).
//
// It goes in three steps and waits between them for every connected edge to
// answer, at most Config.AckTimeout:
//
//  1. add: products and policies that are new, beside those that will go;
//  2. switch: listeners and routes;
//  3. remove: products and policies that no route needs any more.
//
// So an edge never has a route whose policy or product it does not know. An
// edge that refuses a step is reported and does not hold up the others; it
// answers routes without a policy with 503 and never lets them pass.
func (s *Server) Publish(ctx context.Context, version int64, d config.Document) error {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	if version < s.Version() || version == s.Version() && !s.waits() {
		return nil
	}
	made, err := s.compile(ctx, d)
	if err != nil {
		return err
	}
	next := made.set
	if version == s.Version() && next == s.current {
		return nil
	}
	s.report(version, made)
	s.setWanted(version)
	start := s.config.Now()
	for i, step := range s.steps(next) {
		if err := step(); err != nil {
			return fmt.Errorf("publish version %d, step %d: %w", version, i+1, err)
		}
		s.await(ctx, version)
	}
	s.mu.Lock()
	s.version, s.current = version, next
	s.mu.Unlock()
	s.fleet.announceAll()
	s.metrics.published.Observe(s.config.Now().Sub(start).Seconds())
	s.config.Log.Info("configuration published", "version", version, "routes", len(d.Routes), "took", s.config.Now().Sub(start).String())
	return nil
}

// report says what of a version cannot be served as it is. It was right when it
// was stored: the rules, or what this process is started with, have changed.
func (s *Server) report(version int64, c compiled) {
	if err := apierror.Invalid(c.faults); err != nil {
		s.config.Log.Error("objects of the configuration are left out or closed", "version", version, "cause", err)
	}
	err := s.config.Resources.CheckUpstreams(c.document)
	if err != nil {
		s.config.Log.Error("addresses of products are left out", "version", version, "cause", err)
	}
	faults := len(c.faults)
	if e, ok := errors.AsType[*apierror.Error](err); ok {
		faults += len(e.Details)
	}
	s.metrics.faults.Set(float64(faults))
}

// waits reports whether routes of the present version may ask for more scopes than they did.
func (s *Server) waits() bool {
	s.compiler.mu.Lock()
	defer s.compiler.mu.Unlock()
	return len(s.compiler.numbers.Waiting) > 0
}

// setWanted notes that a version is about to be served.
func (s *Server) setWanted(version int64) {
	s.mu.Lock()
	s.wanted = version
	s.mu.Unlock()
	s.fleet.announceAll()
}

func (s *Server) steps(next *resources.Set) []func() error {
	both := next
	if s.current != nil {
		both = overlap(s.current, next)
	}
	return []func() error{
		func() error { return s.setDependencies(both) },
		func() error {
			if err := s.caches.setListeners(next); err != nil {
				return err
			}
			return s.caches.set(resource.RouteType, asCollection(next.Routes))
		},
		func() error { return s.setDependencies(next) },
	}
}

// setDependencies serves what routes need: products, with their secrets and addresses, and
// policies.
func (s *Server) setDependencies(set *resources.Set) error {
	if err := s.caches.set(resource.SecretType, asCollection(union(s.certificates, set.Secrets))); err != nil {
		return err
	}
	if err := s.caches.set(resource.ClusterType, asCollection(set.Clusters)); err != nil {
		return err
	}
	if err := s.caches.set(resource.EndpointType, asCollection(set.Endpoints)); err != nil {
		return err
	}
	return s.caches.set(resource.ExtensionConfigType, asCollection(set.Filters))
}

// overlap returns next, with what old has besides.
func overlap(old, next *resources.Set) *resources.Set {
	p := overlapPolicy(old.Policy, next.Policy)
	filters := union(old.Filters, next.Filters)
	if p != next.Policy {
		filters = union(filters, map[string]*core.TypedExtensionConfig{resources.EdgeFilter: resources.EdgeFilterConfig(p)})
	}
	tables := union(old.Tables, next.Tables)
	if len(tables) > len(next.Tables) {
		filters = union(filters, map[string]*core.TypedExtensionConfig{resources.ValidateFilter: next.ValidateFilterConfig(tables)})
	}
	cached := union(old.CacheRules, next.CacheRules)
	if len(cached) > len(next.CacheRules) {
		filters = union(filters, map[string]*core.TypedExtensionConfig{resources.CacheFilter: resources.CacheFilterConfig(cached)})
	}
	return &resources.Set{
		CacheRules: cached,
		Policy:     p,
		Tables:     tables,
		Filters:    filters,
		Clusters:   union(old.Clusters, next.Clusters),
		Endpoints:  union(old.Endpoints, next.Endpoints),
		Secrets:    union(old.Secrets, next.Secrets),
	}
}

// overlapPolicy returns next, with the routes, and revisions of routes, that only
// old has; next itself when there are none. A rate class that only old has
// lives as long as they do, with the limits that old's plans have in it, and so do
// the terms on which old's routes are paid for.
func overlapPolicy(old, next *policy.Policy) *policy.Policy {
	if old == next {
		return next
	}
	known := make(map[string]bool, len(next.Routes))
	for i := range next.Routes {
		known[next.Routes[i].Key()] = true
	}
	merged := *next
	merged.Routes = slices.Clone(next.Routes)
	for _, r := range old.Routes {
		if known[r.Key()] {
			continue
		}
		if r.Price > 0 && merged.Payment.Network == "" {
			merged.Payment = old.Payment
		}
		r.Class = classIn(&merged, old, r.Class)
		merged.Routes = append(merged.Routes, r)
	}
	if len(merged.Routes) == len(next.Routes) {
		return next
	}
	return &merged
}

// classIn returns the place in p of one of old's classes, which is added when p
// lacks it. A plan that old does not have gets the first of old's limits.
func classIn(p, old *policy.Policy, class uint8) uint8 {
	if class >= policy.ShadowClass {
		i := classIn(p, old, class-policy.ShadowClass)
		p.AddShadows()
		return i + policy.ShadowClass
	}
	names := p.Enforced()
	if i := slices.Index(names, old.Classes[class]); i >= 0 {
		return uint8(i)
	}
	shadows := len(p.Classes) > len(names)
	p.Classes = append(slices.Clone(names), old.Classes[class])
	plans := slices.Clone(p.Plans)
	for i, pl := range plans {
		var limit policy.Limit
		for j, was := range old.Plans {
			if j == 0 || was.Number == pl.Number {
				limit = was.Limits[class]
			}
		}
		plans[i].Limits = append(slices.Clone(pl.Limits[:len(names)]), limit)
	}
	p.Plans = plans
	if shadows {
		p.AddShadows()
	}
	return uint8(len(names))
}

// await returns when every connected edge has accepted or refused all that it
// is being served, and in any case after the configured time.
func (s *Server) await(ctx context.Context, version int64) {
	ctx, cancel := context.WithTimeout(ctx, s.config.AckTimeout)
	defer cancel()
	for {
		changed := s.fleet.wait()
		late := s.late()
		if len(late) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			s.config.Log.Warn("edges have not answered", "version", version, "edges", late)
			return
		case <-changed:
		}
	}
}

// late names the connected edges that have not answered yet.
func (s *Server) late() []string {
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	var ids []string
	for _, e := range s.fleet.streams {
		for url, sub := range e.types {
			want := s.caches.wanted(url, e.addresses)
			if want != nil && !sub.has(want) && !sub.refused(want) {
				ids = append(ids, e.id)
				break
			}
		}
	}
	return ids
}
