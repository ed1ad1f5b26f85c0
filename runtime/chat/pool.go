package chat

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
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
	credit int // of the smooth weighted round robin
	// health is by credential: what a provider refuses to one caller's key, it
	// may do for others. Only credentials that failed last are in it.
	health map[credential]health
}

// credential stands for a caller's key, whose text is not kept; the zero value
// is the operator's key, or none.
type credential [sha256.Size]byte

// health is how a target does with one credential.
type health struct {
	failures int // in a row
	resting  time.Time
}

const (
	restAfter = 3                // failures in a row
	restFor   = 10 * time.Second // before a failing target comes first again
	// maxHealth bounds the credentials of which a target knows something; beyond
	// it all are forgotten but the operator's, and failures count anew.
	maxHealth = 10_000
)

// Attempt is what came of asking the providers of a model for a completion.
type Attempt struct {
	Stream Stream // nil: none began
	First  []byte // its first event
	// Begun says that a provider accepted the request, or was given it and may
	// have when the caller left: it is at work then, and its work is paid.
	Begun bool
}

// NewPool returns a pool over targets; now is the clock, nil: time.Now.
func NewPool(targets []Target, now func() time.Time) *Pool {
	if now == nil {
		now = time.Now
	}
	p := &Pool{now: now}
	for _, t := range targets {
		t.Weight = max(1, t.Weight)
		p.targets = append(p.targets, &target{Target: t, health: map[credential]health{}})
	}
	return p
}

// Open starts the completion r with one of the model's providers. A provider
// that fails before its first event is passed over for the next one, unless it
// says that the request is at fault. It fails with not_found when no provider
// has the model, and with authentication_required when none is for the caller.
func (p *Pool) Open(ctx context.Context, r Request) (a Attempt, err error) {
	order, err := p.order(r)
	if err != nil {
		return a, err
	}
	// The last failure is the one to report: the others were passed over.
	for _, c := range order {
		var answered bool
		a.Stream, a.First, answered, err = start(ctx, c.Provider, r)
		a.Begun = a.Begun || answered || errors.Is(err, ErrUnanswered) && errors.Is(context.Cause(ctx), context.Canceled)
		// A client that leaves is no fault of the provider's.
		if ctx.Err() != nil && err != nil {
			return a, ctx.Err()
		}
		_, refused := errors.AsType[*Refusal](err)
		p.note(c, err == nil || refused)
		if err == nil || refused {
			return a, err
		}
	}
	return a, err
}

// start waits for the first event. One that is an error counts as a failure.
// answered says that the provider accepted the request.
func start(ctx context.Context, p Provider, r Request) (s Stream, first []byte, answered bool, err error) {
	if s, err = p.Stream(ctx, r); err != nil {
		return nil, nil, false, err
	}
	if first, err = s.Next(); err == nil {
		if c, ok := parse(first, new(seen)); ok && c.has[fieldError] {
			err = providerError(c.data, c.fields[fieldError].Value)
		}
	}
	if err != nil {
		_ = s.Close() // the next provider has its turn
		if _, ok := errors.AsType[*apierror.Error](err); !ok {
			err = &apierror.Error{Code: decision.BadGateway, Message: "The provider's stream ended before it began.", Cause: err}
		}
		return nil, nil, true, err
	}
	return s, first, true, nil
}

// candidate is a target that may be asked, and with whose key.
type candidate struct {
	*target
	credential credential
}

// candidates are the targets of the model that are for the caller.
func (p *Pool) candidates(r Request) (list []candidate, err error) {
	fit := p.match(r.Model)
	if len(fit) == 0 {
		return nil, &apierror.Error{Code: decision.NotFound, Message: "There is no such model.",
			Details: []decision.Detail{{Field: "model", Issue: "is not served here", Expected: "a model that GET /v1/models lists"}}}
	}
	for _, t := range fit {
		text, refused := t.Provider.Credential(r.Caller)
		if refused != nil {
			err = refused
			continue
		}
		c := candidate{target: t}
		if text != "" {
			c.credential = sha256.Sum256([]byte(text))
		}
		list = append(list, c)
	}
	if len(list) > 0 {
		err = nil
	}
	return list, err
}

// order returns the candidates for a request: first the one whose turn it is,
// then the others by weight, then those that rest.
func (p *Pool) order(r Request) ([]candidate, error) {
	fit, err := p.candidates(r)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// Smooth weighted round robin: everyone gains its weight, and whose turn it
	// is pays what all have gained. Turns are spread, not in blocks.
	now, total := p.now(), 0
	rests := func(c candidate) bool { return now.Before(c.health[c.credential].resting) }
	var turn *target
	for _, c := range fit {
		if rests(c) {
			continue
		}
		c.credit += c.Weight
		total += c.Weight
		if turn == nil || c.credit > turn.credit {
			turn = c.target
		}
	}
	// Those that rest come last and not never: when all rest, they are asked.
	var first, order, resting []candidate
	for _, c := range fit {
		switch {
		case c.target == turn:
			c.credit -= total
			first = []candidate{c}
		case rests(c):
			resting = append(resting, c)
		default:
			order = append(order, c)
		}
	}
	return slices.Concat(first, order, resting), nil
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

// note remembers how a target did with a credential.
func (p *Pool) note(c candidate, well bool) {
	if !well && p.failed != nil {
		p.failed(c.Name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if well {
		delete(c.health, c.credential)
		return
	}
	if len(c.health) >= maxHealth {
		ours := c.health[credential{}]
		clear(c.health)
		c.health[credential{}] = ours
	}
	h := c.health[c.credential]
	if h.failures++; h.failures >= restAfter {
		h.resting = p.now().Add(restFor)
	}
	c.health[c.credential] = h
}
