package config

import (
	"context"
	"errors"
	"strconv"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// Publisher checks changes of the configuration and stores them, one at a time.
// A process has one, whoever changes the configuration.
type Publisher struct {
	Store   Store
	Profile string // of this control plane, see Document.Expand
	compile func(Document) error
	checker *Checker
	// turn lets one change at a time through: others would wait for the same
	// lock of the database, each with a connection.
	turn chan struct{}
}

// NewPublisher returns a Publisher that stores in s. compile finds faults besides
// those of Faults: those that only show when a document is compiled for edges.
// checker finds the faults of documents; nil: one that remembers nothing. One that
// compile uses too looks once for both.
func NewPublisher(s Store, compile func(Document) error, checker *Checker) *Publisher {
	return &Publisher{Store: s, compile: compile, checker: checker, turn: make(chan struct{}, 1)}
}

// PutResult answers a change of the configuration.
type PutResult struct {
	Version int64    `json:"version"` // the newest one, after the change
	DryRun  bool     `json:"dry_run"`
	Changes []Change `json:"changes"` // none: the document was in force already
	// Warnings are faults of objects that were there before and were not changed:
	// what became of them is in Document.Usable.
	Warnings []decision.Detail `json:"warnings,omitempty"`
}

// edit makes a document of the newest version.
type edit func(now Version) (Document, error)

// publish looks for every fault in what e makes of the newest version and stores
// it as the next one, if there is none.
func (p *Publisher) publish(ctx context.Context, author, note string, e edit) (PutResult, error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return PutResult{}, ctx.Err()
	}
	var warnings []decision.Detail
	v, changes, err := p.Store.Edit(ctx, author, note, p.validated(e, &warnings))
	if err != nil {
		return PutResult{}, err
	}
	return PutResult{Version: v.Number, Changes: append([]Change{}, changes...), Warnings: decision.Bounded(warnings)}, nil
}

// dryRun returns what publish would do.
func (p *Publisher) dryRun(ctx context.Context, e edit) (PutResult, error) {
	now, err := p.Store.Latest(ctx)
	if err != nil && apierror.Code(err) != decision.NotFound {
		return PutResult{}, err
	}
	var warnings []decision.Detail
	d, err := p.validated(e, &warnings)(now)
	if err != nil {
		return PutResult{}, err
	}
	return PutResult{Version: now.Number, DryRun: true, Changes: differences(now.Document, d), Warnings: warnings}, nil
}

// Rollback makes the document of a version the newest one again, as author. It is
// checked like any other: what was right then may lack a plan that accounts now
// have. It fails with precondition_failed when ifMatch is neither Any nor the
// number of the newest version.
func (p *Publisher) Rollback(ctx context.Context, author string, number, ifMatch int64) (PutResult, error) {
	old, err := p.Store.Get(ctx, number)
	if err != nil {
		return PutResult{}, err
	}
	return p.publish(ctx, author, rollbackNote(number), replaceBy(old.Document, ifMatch))
}

// rollbackNote is the note of a version that is old again.
func rollbackNote(number int64) string {
	return "rollback to version " + strconv.FormatInt(number, 10)
}

// replaceBy is the edit that puts d in the place of the newest version, if ifMatch
// is its number or Any.
func replaceBy(d Document, ifMatch int64) edit {
	return func(now Version) (Document, error) {
		if ifMatch != Any && ifMatch != now.Number {
			return d, stale(now.Number)
		}
		return d, nil
	}
}

// validated is e, followed by validateChange of what it makes; it fills in warnings.
func (p *Publisher) validated(e edit, warnings *[]decision.Detail) edit {
	return func(now Version) (Document, error) {
		d, err := e(now)
		if err == nil {
			*warnings, err = p.validateChange(now.Document, d)
		}
		return d, err
	}
}

// validateChange fails with every fault that d brings with it. Faults that before
// had, in objects that d leaves as they are, are warnings: they came with a new
// release, or with other settings of the control plane, and must not hold up all
// else.
func (p *Publisher) validateChange(before, d Document) (warnings []decision.Detail, err error) {
	for _, find := range []func(Document) ([]decision.Detail, error){p.documentFaults, p.compileFaults} {
		faults, err := find(d)
		if err != nil {
			return nil, err
		}
		if len(faults) == 0 {
			continue
		}
		known, _ := find(before)
		fresh, old := splitFaults(before, d, known, faults)
		if len(fresh) > 0 {
			return nil, apierror.Invalid(fresh)
		}
		warnings = append(warnings, old...)
	}
	return warnings, nil
}

// documentFaults are the faults that show in d alone.
func (p *Publisher) documentFaults(d Document) ([]decision.Detail, error) {
	return p.checker.Faults(d), nil
}

// compileFaults are those that show when d is compiled. It fails when d does not
// compile for a reason that is in no field.
func (p *Publisher) compileFaults(d Document) ([]decision.Detail, error) {
	err := p.compile(d)
	if e, ok := errors.AsType[*apierror.Error](err); ok && len(e.Details) > 0 {
		return e.Details, nil
	}
	return nil, err
}

// differences is Diff for JSON: never null.
func differences(a, b Document) []Change {
	return append([]Change{}, Diff(a, b)...)
}

// stale says that the document was written against another version.
func stale(now int64) error {
	return apierror.Errorf(decision.Precondition, "The configuration is at version %d.", now)
}
