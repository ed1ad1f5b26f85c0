package xds

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/xds/resources"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// compiled is a document that has passed all checks, with what it became. Who
// puts a version of thousands of routes checks it, and publishes it a moment
// later: that is done once.
type compiled struct {
	document config.Document
	usable   config.Document   // what of it is served
	faults   []decision.Detail // for which the rest is not
	numbers  config.Numbers
	set      *resources.Set
}

// compiler remembers the last document that it compiled, and what its parts became:
// of the next one that differs by an object only that is compiled.
type compiler struct {
	options  resources.Options
	checker  *config.Checker
	policies config.Policies
	builder  *resources.Builder

	mu      sync.Mutex
	numbers config.Numbers // that the last published version was given
	last    compiled
}

// Check reports the faults of d that only show when it is compiled. What d has
// otherwise against it, Faults says.
func (s *Server) Check(d config.Document) error {
	if _, err := s.compiler.compile(d, s.compiler.guess); err != nil {
		return err
	}
	return s.compiler.options.CheckUpstreams(d)
}

// Checker is what the server finds the faults of documents with.
func (s *Server) Checker() *config.Checker { return s.compiler.checker }

// guess returns the numbers of d's scopes and plans if they are known, else some.
func (c *compiler) guess(d config.Document) (config.Numbers, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.numbers.Cover(d) {
		return c.numbers, nil
	}
	return config.ProvisionalNumbers(d), nil
}

// compile returns what d, as far as it can be served, becomes with the numbers
// that number gives that part.
func (c *compiler) compile(d config.Document, number func(config.Document) (config.Numbers, error)) (compiled, error) {
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	now := compiled{document: d, usable: last.usable, faults: last.faults}
	known := last.set != nil && last.document.Equal(d)
	if !known {
		var ok bool
		if now.usable, now.faults, ok = c.checker.Usable(d); !ok {
			return now, apierror.Invalid(now.faults)
		}
	}
	var err error
	if now.numbers, err = number(now.usable); err != nil {
		return now, fmt.Errorf("number scopes and plans: %w", err)
	}
	if known && reflect.DeepEqual(last.numbers, now.numbers) {
		return last, nil
	}
	// The number of the version is not in the policy: edges would read it anew
	// after changes that it has no part in.
	p, err := c.policies.Policy(now.usable, 0, c.options.DocsBase, now.numbers)
	if err != nil {
		return now, err
	}
	if now.set, err = c.builder.Build(now.usable, p); err != nil {
		return now, err
	}
	c.mu.Lock()
	c.last = now
	c.mu.Unlock()
	return now, nil
}

// compile returns what is to be served for d, with the numbers that its scopes
// and plans have. They are remembered for Check.
func (s *Server) compile(ctx context.Context, d config.Document) (compiled, error) {
	return s.compiler.compile(d, func(usable config.Document) (config.Numbers, error) {
		n, err := s.config.Numbers(ctx, usable)
		if err == nil {
			s.compiler.mu.Lock()
			s.compiler.numbers = n
			s.compiler.mu.Unlock()
		}
		return n, err
	})
}
