package config

import (
	"context"
	"encoding/json"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// ObjectEdit changes one object of the document, for surfaces that are not the admin API:
// what is wrong with it is found, and named, in the same way.
type ObjectEdit struct {
	Kind, Name string          // of Kinds, and its name
	Object     json.RawMessage // what it becomes; nil: it is removed
	New        bool            // there must be none of this name
	IfMatch    int64           // the version that the edit was made against
	Note       string
}

// Find returns the object of a kind and name.
func (d Document) Find(of, name string) (object any, ok bool) {
	k, ok := kinds[of]
	if !ok {
		return nil, false
	}
	i := k.index(d, name)
	if i < 0 {
		return nil, false
	}
	return k.at(d, i), true
}

// objectChange is an ObjectEdit at work: the document that it made, and where in it the
// object is.
type objectChange struct {
	ObjectEdit
	kind   kind
	object any
	made   Document
	at     int
}

// change reads e. It fails with the faults of the object's JSON.
func (e ObjectEdit) change() (*objectChange, error) {
	c := &objectChange{ObjectEdit: e, kind: kinds[e.Kind], at: -1}
	if c.kind == nil {
		return nil, &apierror.Error{Code: decision.NotFound}
	}
	if len(e.Note) > maxNote {
		return nil, apierror.Invalid([]decision.Detail{{Field: "note", Issue: "is too long", Expected: "at most 500 bytes"}})
	}
	if e.Object == nil {
		return c, nil
	}
	var err error
	c.object, _, err = c.kind.read(e.Object, e.Name)
	return c, err
}

// edit makes the document.
func (c *objectChange) edit(now Version) (Document, error) {
	if c.IfMatch != now.Number {
		return c.made, stale(now.Number)
	}
	i := c.kind.index(now.Document, c.Name)
	switch {
	case i >= 0 && c.New:
		return c.made, &apierror.Error{Code: decision.Conflict, Message: "It exists already.",
			Details: []decision.Detail{{Field: "name", Issue: "exists already", Expected: "a name that none of them has"}}}
	case i < 0 && !c.New:
		return c.made, &apierror.Error{Code: decision.NotFound}
	case c.object == nil:
		c.made = c.kind.without(now.Document, i)
	default:
		c.made = c.kind.with(now.Document, i, c.object)
		c.at = c.kind.index(c.made, c.Name)
	}
	return c.made, nil
}

// ProposeObject looks at what an edit would do, and publishes nothing. It fails with every
// fault that PublishObject would fail with, with precondition_failed when another version
// has been published since, and with conflict for a new object whose name is taken.
func (p *Publisher) ProposeObject(ctx context.Context, e ObjectEdit) (Proposal, error) {
	c, err := e.change()
	if err != nil {
		return Proposal{}, err
	}
	now, err := p.Store.Latest(ctx)
	if err != nil {
		return Proposal{}, err
	}
	d, err := c.edit(now)
	if err != nil {
		return Proposal{}, err
	}
	out, err := p.propose(ctx, d)
	if err == nil && out.Version != e.IfMatch {
		err = stale(out.Version)
	}
	return out, named(err, d, e.Kind, c.at)
}

// PublishObject publishes an edit as a new version. It fails as ProposeObject does.
func (p *Publisher) PublishObject(ctx context.Context, author string, e ObjectEdit) (PutResult, error) {
	c, err := e.change()
	if err != nil {
		return PutResult{}, err
	}
	res, err := p.publish(ctx, author, e.Note, c.edit)
	return res, named(err, c.made, e.Kind, c.at)
}
