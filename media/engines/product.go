package engines

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/engines/remote"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/limits/fairshare"
)

// Engine is what all engines have in common.
type Engine interface {
	// Check reports whether the engine can work now, and which one it is: its name and
	// version, such as "moonshine tiny-en 0.1.0". It takes a second at most.
	Check(context.Context) (version string, err error)
}

// Product is one product's engines. E is the interface by which they do its work. Its
// zero value has no engine. It is safe for concurrent use, and must not be copied.
type Product[E Engine] struct {
	Name     string                         // Transcribe, Voice or Vision
	What     string                         // it does, for people, such as "speech recognition"
	Settings func(context.Context) Settings // in force; nil: none
	Default  Setting                        // where they say nothing
	// Lookup finds the variables that keys of engines stand in. Nil: there are none.
	Lookup func(name string) (value string, ok bool)
	// Builtin returns the one on this machine, which may come later than this process.
	// Nil, or not ok: there is none.
	Builtin func() (e E, ok bool)
	// Remote makes one of an address. Nil: addresses are not used.
	Remote func(a *remote.API) E
	Now    func() time.Time // nil: time.Now

	mu     sync.Mutex
	pool   *fairshare.Pool
	places int // of pool
	api    *remote.API
	of     [3]string        // URL, key and model that api was made of
	found  map[string]State // of engines by Use, when they were looked at last
	looked map[string]time.Time
}

// State is what the registry says of a product's engine.
type State struct {
	Use     string `json:"use"`               // builtin or url; off: the document says so; empty: there is none
	Health  string `json:"health"`            // ok, failing, or unknown when there is none
	Version string `json:"version,omitempty"` // which one it is
}

// The words of State.Health.
const (
	OK      = "ok"
	Failing = "failing"
	Unknown = "unknown"
)

// stale is how long what a check found is used, and patience how long it may take: the
// registry waits a second for all that it asks.
const (
	stale    = 15 * time.Second
	patience = 800 * time.Millisecond
)

// retryAfter is what a full queue says, in seconds (contract 5.6: 30 to 60 s).
const retryAfter = 30

// Setting is what is in force for the product, with its defaults.
func (p *Product[E]) Setting(ctx context.Context) Setting {
	if p.Settings == nil {
		return Setting{}.or(p.Default).filled()
	}
	return p.Settings(ctx)[p.Name].or(p.Default).filled()
}

// Available reports whether there is an engine that calls can be given to, whether or
// not it is well.
func (p *Product[E]) Available(ctx context.Context) bool {
	s := p.Setting(ctx)
	_, builtin := p.builtin(s)
	_, url := p.remote(s)
	return builtin || url
}

// Missing is the error of a product without an engine: not_implemented.
func (p *Product[E]) Missing() error {
	return apierror.Errorf(decision.NotImplemented, "There is no engine for %s here.", p.What)
}

// Do has the engine in force do a piece of work for an account. It waits until the
// account's turn has come, and gives job as long as the setting says, or until ctx
// ends: job's context ends then. Where the setting leaves the choice and an address
// cannot be reached, job is called again with the built-in engine, so it must be one
// that can be repeated. It fails with not_implemented when there is no engine,
// TRANSCODE_001 when too much waits for the account, gateway_timeout after the
// setting's time, and as job does.
func (p *Product[E]) Do(ctx context.Context, account string, job func(context.Context, E, Setting) error) error {
	s := p.Setting(ctx)
	list := p.order(ctx, s)
	if len(list) == 0 {
		return p.Missing()
	}
	leave, err := p.queue(s).Enter(ctx, account)
	if errors.Is(err, fairshare.ErrBusy) {
		return &apierror.Error{Code: decision.Transcode001, Message: "Too much of the account's work waits for " + p.What + ".", RetryAfter: retryAfter}
	}
	if err != nil {
		return err
	}
	defer leave()
	within, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	for i, one := range list {
		err = job(within, one.engine, s)
		if !errors.Is(err, remote.ErrUnreachable) {
			break
		}
		p.note(one.use, State{Use: one.use, Health: Failing})
		if i == len(list)-1 || within.Err() != nil {
			break
		}
	}
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return &apierror.Error{Code: decision.GatewayTimeout, Message: "The engine for " + p.What + " took too long.", Cause: err}
	}
	return err
}

// First is the engine that a call would be given to now, to be asked what costs it
// nothing, such as which voices it has. Work is for Do.
func (p *Product[E]) First(ctx context.Context) (e E, ok bool) {
	for _, one := range p.order(ctx, p.Setting(ctx)) {
		return one.engine, true
	}
	return e, false
}

// State says which engine calls are given to, and how it is; what a check of the last
// 15 seconds found counts. It takes a second at most.
func (p *Product[E]) State(ctx context.Context) State {
	s := p.Setting(ctx)
	if s.Use == Off {
		return State{Use: Off, Health: Unknown}
	}
	list := p.order(ctx, s)
	if len(list) == 0 {
		return State{Health: Unknown}
	}
	return p.look(ctx, list[0])
}

// choice is an engine and what it is: Builtin or URL.
type choice[E Engine] struct {
	use    string
	engine E
}

// order lists the engines that may do the work, the best first. An address that does
// not answer comes after a built-in engine.
func (p *Product[E]) order(ctx context.Context, s Setting) (list []choice[E]) {
	if e, ok := p.remote(s); ok {
		list = append(list, choice[E]{URL, e})
	}
	if e, ok := p.builtin(s); ok {
		list = append(list, choice[E]{Builtin, e})
	}
	if len(list) == 2 && p.look(ctx, list[0]).Health != OK {
		list[0], list[1] = list[1], list[0]
	}
	return list
}

// builtin is the one on this machine, where s lets it be used.
func (p *Product[E]) builtin(s Setting) (e E, ok bool) {
	if p.Builtin == nil || s.Use != Auto && s.Use != Builtin {
		return e, false
	}
	return p.Builtin()
}

// remote is the one at an address, where s has any. A key that is not there is none:
// the address refuses the call, and says why.
func (p *Product[E]) remote(s Setting) (e E, ok bool) {
	if p.Remote == nil || s.URL == "" || s.Use != Auto && s.Use != URL {
		return e, false
	}
	key := ""
	if p.Lookup != nil && strings.HasPrefix(s.KeyFrom, KeyPrefix) {
		key, _ = p.Lookup(s.KeyFrom)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if of := [3]string{s.URL, key, s.Model}; p.api == nil || p.of != of {
		api, err := remote.New(s.URL, key, s.Model)
		if err != nil { // validation refuses such a document
			return e, false
		}
		p.api, p.of, p.looked = api, of, nil
	}
	return p.Remote(p.api), true
}

// queue is the queue for s; work that entered one of another size ends there.
func (p *Product[E]) queue(s Setting) *fairshare.Pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pool == nil || p.places != s.Concurrency {
		p.pool, p.places = fairshare.New(fairshare.Config{Places: s.Concurrency}), s.Concurrency
	}
	return p.pool
}

// look checks an engine, unless that was done a moment ago.
func (p *Product[E]) look(ctx context.Context, c choice[E]) State {
	p.mu.Lock()
	state, at := p.found[c.use], p.looked[c.use]
	p.mu.Unlock()
	if !at.IsZero() && p.now().Sub(at) < stale {
		return state
	}
	// Whoever asks is not the only one who is told.
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	version, err := c.engine.Check(within)
	state = State{Use: c.use, Health: OK, Version: version}
	if err != nil {
		state.Health = Failing
	}
	p.note(c.use, state)
	return state
}

// note keeps what an engine was found to be like.
func (p *Product[E]) note(use string, s State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.looked == nil {
		p.found, p.looked = map[string]State{}, map[string]time.Time{}
	}
	if s.Version == "" {
		s.Version = p.found[use].Version
	}
	p.found[use], p.looked[use] = s, p.now()
}

func (p *Product[E]) now() time.Time {
	if p.Now != nil {
		return p.Now()
	}
	return time.Now()
}

// Known is a Product, whatever its engines are.
type Known interface {
	Available(context.Context) bool
	State(context.Context) State
}

// States are those of products by name, asked at once.
func States(ctx context.Context, products map[string]Known) map[string]State {
	var mu sync.Mutex
	var all sync.WaitGroup
	found := map[string]State{}
	for name, p := range products {
		all.Go(func() {
			s := p.State(ctx)
			mu.Lock()
			defer mu.Unlock()
			found[name] = s
		})
	}
	all.Wait()
	return found
}
