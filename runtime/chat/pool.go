package chat

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/filters/decision"
)

// Target is a provider with the models that it serves.
type Target struct {
	Name     string // for logs
	Provider Provider
	// Models are names, or beginnings of names that end with *. None: every
	// model that no other target names.
	Models []string
	// Weight is the share of requests among targets for the same model that
	// this one gets; 0: 1.
	Weight int
}

// Pool finds providers for models.
type Pool struct {
	now    func() time.Time
	failed func(name string) // told of each failure before a first event; nil: nobody

	mu      sync.Mutex
	targets []*target
}

// target is a Target with what is known about it.
type target struct {
	Target
	credit   int // of the smooth weighted round robin
	failures int // in a row
	resting  time.Time
}

const (
	restAfter = 3                // failures in a row
	restFor   = 10 * time.Second // before a failing target comes first again
)

// NewPool returns a pool over targets; now is the clock, nil: time.Now.
func NewPool(targets []Target, now func() time.Time) *Pool {
	if now == nil {
		now = time.Now
	}
	p := &Pool{now: now}
	for _, t := range targets {
		t.Weight = max(1, t.Weight)
		p.targets = append(p.targets, &target{Target: t})
	}
	return p
}

// Open starts the completion r with one of the model's providers, and returns
// its stream and first event. A provider that fails before its first event is
// passed over for the next one, unless it says that the request is at fault.
// It fails with not_found when no provider has the model.
func (p *Pool) Open(ctx context.Context, r Request) (Stream, []byte, error) {
	order := p.order(r.Model)
	if len(order) == 0 {
		return nil, nil, &controlplane.Error{Code: decision.NotFound, Message: "There is no such model.",
			Details: []decision.Detail{{Field: "model", Issue: "is not served here", Expected: "a model that GET /v1/models lists"}}}
	}
	// The last failure is the one to report: the others were passed over.
	var failure error
	for _, t := range order {
		s, first, err := start(ctx, t.Provider, r)
		// A client that leaves is no fault of the provider's.
		if ctx.Err() != nil && err != nil {
			return nil, nil, ctx.Err()
		}
		_, refused := errors.AsType[*Refusal](err)
		p.note(t, err == nil || refused)
		if err == nil {
			return s, first, nil
		}
		if failure = err; refused {
			break
		}
	}
	return nil, nil, failure
}

// start waits for the first event. One that is an error counts as a failure.
func start(ctx context.Context, p Provider, r Request) (Stream, []byte, error) {
	s, err := p.Stream(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	first, err := s.Next()
	if err == nil {
		if c, ok := parse(first, new(seen)); ok && c.has[fieldError] {
			err = providerError(c.data, c.fields[fieldError].Value)
		}
	}
	if err != nil {
		_ = s.Close() // the next provider has its turn
		if _, ok := errors.AsType[*controlplane.Error](err); !ok {
			err = &controlplane.Error{Code: decision.BadGateway, Message: "The provider's stream ended before it began.", Cause: err}
		}
		return nil, nil, err
	}
	return s, first, nil
}

// order returns the targets for a model: first the one whose turn it is, then
// the others by weight, then those that rest.
func (p *Pool) order(model string) []*target {
	p.mu.Lock()
	defer p.mu.Unlock()
	fit := p.match(model)
	if len(fit) == 0 {
		return nil
	}
	// Smooth weighted round robin: everyone gains its weight, and whose turn it
	// is pays what all have gained. Turns are spread, not in blocks.
	now, total := p.now(), 0
	var turn *target
	for _, t := range fit {
		if now.Before(t.resting) {
			continue
		}
		t.credit += t.Weight
		total += t.Weight
		if turn == nil || t.credit > turn.credit {
			turn = t
		}
	}
	// Those that rest come last and not never: when all rest, they are asked.
	var order, resting []*target
	if turn != nil {
		turn.credit -= total
		order = append(order, turn)
	}
	for _, t := range fit {
		switch {
		case t == turn:
		case now.Before(t.resting):
			resting = append(resting, t)
		default:
			order = append(order, t)
		}
	}
	return append(order, resting...)
}

// match returns the targets that name the model, else those that name none.
func (p *Pool) match(model string) (fit []*target) {
	var any []*target
	for _, t := range p.targets {
		if len(t.Models) == 0 {
			any = append(any, t)
		}
		for _, m := range t.Models {
			if begin, ok := strings.CutSuffix(m, "*"); m == model || ok && strings.HasPrefix(model, begin) {
				fit = append(fit, t)
				break
			}
		}
	}
	if len(fit) == 0 {
		return any
	}
	return fit
}

// note remembers how a target did.
func (p *Pool) note(t *target, well bool) {
	if !well && p.failed != nil {
		p.failed(t.Name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if well {
		t.failures, t.resting = 0, time.Time{}
		return
	}
	if t.failures++; t.failures >= restAfter {
		t.resting = p.now().Add(restFor)
	}
}
