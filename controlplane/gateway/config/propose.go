package config

import (
	"context"

	"sluice.dev/sluice/filters/decision"
)

// Proposal is a document that is not in force beside the one that is, both as far as
// edges would serve them.
type Proposal struct {
	Version  int64 // that is in force
	InForce  Document
	Proposed Document
	Changes  []Change
	Warnings []decision.Detail
}

// Propose reads a document, as PUT config does, without publishing it. It fails with
// every fault that publishing it would fail with.
func (p *Publisher) Propose(ctx context.Context, raw []byte) (Proposal, error) {
	d, err := handlers{p}.whole(raw)
	if err != nil {
		return Proposal{}, err
	}
	return p.propose(ctx, d)
}

// ProposeVersion proposes the document of an earlier version.
func (p *Publisher) ProposeVersion(ctx context.Context, number int64) (Proposal, error) {
	v, err := p.Store.Get(ctx, number)
	if err != nil {
		return Proposal{}, err
	}
	return p.propose(ctx, v.Document)
}

func (p *Publisher) propose(ctx context.Context, d Document) (out Proposal, err error) {
	now, err := p.Store.Latest(ctx)
	if err != nil {
		return out, err
	}
	res, err := p.dryRun(ctx, replaceBy(d, now.Number))
	if err != nil {
		return out, err
	}
	out = Proposal{Version: now.Number, Changes: res.Changes, Warnings: decision.Bounded(res.Warnings)}
	out.InForce, _, _ = p.checker.Usable(now.Document)
	out.Proposed, _, _ = p.checker.Usable(d)
	return out, nil
}

// WithNumbers are known numbers, and some for what d has besides: they serve to look at it, since no record has them.
func (d Document) WithNumbers(known Numbers) Numbers {
	n := Numbers{Scopes: map[string]int{}, Plans: map[string]uint16{}}
	bit, number := 0, uint16(0)
	for name, b := range known.Scopes {
		n.Scopes[name], bit = b, max(bit, b+1)
	}
	for name, p := range known.Plans {
		n.Plans[name], number = p, max(number, p+1)
	}
	for _, name := range d.ScopeNames() {
		if _, ok := n.Scopes[name]; !ok {
			n.Scopes[name] = bit
			bit++
		}
	}
	for _, name := range d.PlanNames() {
		if _, ok := n.Plans[name]; !ok {
			n.Plans[name] = number
			number++
		}
	}
	return n
}
