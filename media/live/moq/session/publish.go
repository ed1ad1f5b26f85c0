package session

import (
	"context"
	"sync/atomic"

	"sluice.dev/sluice/media/live/moq/wire"
)

// Subscription is one of the peer's.
type Subscription struct {
	Request wire.Request

	s       *Session
	ctx     context.Context
	cancel  context.CancelFunc
	streams atomic.Uint64
}

// Context ends with the subscription.
func (p *Subscription) Context() context.Context { return p.ctx }

// Accept tells the peer that objects follow, and what came before them; nil:
// nothing did. Our aliases are the ids of their requests.
func (p *Subscription) Accept(largest *wire.Location) error {
	a := wire.Accepted{ID: p.Request.ID, Alias: p.Request.ID, GroupOrder: max(1, p.Request.GroupOrder), Exists: largest != nil}
	if largest != nil {
		a.Largest = *largest
	}
	return p.s.write(a.Message())
}

// Reject tells the peer why there is no such subscription. code is one of wire's
// Request….
func (p *Subscription) Reject(code uint64, reason string) error {
	p.leave()
	return p.s.write(wire.Refusal{ID: p.Request.ID, Code: code, Reason: reason}.Message(wire.SubscribeError))
}

// Done tells the peer that nothing follows any more. It does nothing when the peer
// has left before.
func (p *Subscription) Done(status uint64, reason string) error {
	if p.ctx.Err() != nil {
		return nil
	}
	p.leave()
	return p.s.write(wire.Done(p.Request.ID, status, p.streams.Load(), reason))
}

// leave frees the place of the subscription.
func (p *Subscription) leave() {
	p.s.mu.Lock()
	delete(p.s.subs, p.Request.ID)
	p.s.mu.Unlock()
	p.cancel()
}

// Open begins a group, on a stream of its own. It waits while the peer lets no
// further stream be opened.
func (p *Subscription) Open(ctx context.Context, group uint64, priority byte) (*GroupWriter, error) {
	stream, err := p.s.conn.OpenUniStream(ctx)
	if err != nil {
		return nil, err
	}
	p.streams.Add(1)
	head := wire.AppendSubgroup(nil, wire.Subgroup{Alias: p.Request.ID, Group: group, Priority: priority})
	return &GroupWriter{stream: stream, head: head}, nil
}

// GroupWriter writes the objects of one group.
type GroupWriter struct {
	stream SendStream
	head   []byte // of the stream, until it is written
}

// Write sends the next object. It waits as long as the peer does not take it.
func (g *GroupWriter) Write(payload []byte) error {
	b := wire.AppendObject(g.head, payload)
	g.head = nil
	_, err := g.stream.Write(b)
	return err
}

// Close ends the group.
func (g *GroupWriter) Close() error { return g.stream.Close() }

// Reset gives the group up; a Write that waits fails. It may be called beside Write.
func (g *GroupWriter) Reset() { g.stream.Reset() }
