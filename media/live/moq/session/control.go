package session

import (
	"context"
	"errors"
	"fmt"

	"sluice.dev/sluice/media/live/moq/wire"
)

// take acts on one control message. An error ends the session.
func (s *Session) take(ctx context.Context, m wire.Message) error {
	switch m.Type {
	case wire.Subscribe:
		return s.subscribed(ctx, m.Body)
	case wire.PublishNamespace, wire.SubscribeNamespace:
		return s.named(m)
	case wire.SubscribeOK, wire.SubscribeError, wire.PublishNamespaceOK, wire.PublishNamespaceError:
		return s.answered(m)
	case wire.Unsubscribe, wire.PublishDone, wire.MaxRequestID:
		return s.numbered(m)
	case wire.Fetch, wire.TrackStatus, wire.Publish:
		return s.unsupported(m)
	case wire.SubscribeUpdate, wire.PublishNamespaceDone, wire.PublishNamespaceCancel, wire.UnsubscribeNamespace,
		wire.FetchCancel, wire.RequestsBlocked, wire.GoAway, wire.SubscribeNamespaceOK, wire.SubscribeNamespaceError:
		return nil // they change nothing here
	}
	return fmt.Errorf("%w: type %#x", wire.ErrMalformed, m.Type)
}

// subscribed takes a SUBSCRIBE.
func (s *Session) subscribed(ctx context.Context, body []byte) error {
	r, err := wire.ParseRequest(body)
	if err != nil {
		return err
	}
	if err := s.admit(r.ID); err != nil {
		return err
	}
	sub := &Subscription{Request: r, s: s}
	sub.ctx, sub.cancel = context.WithCancel(ctx)
	s.mu.Lock()
	full := len(s.subs) >= maxSubscriptions
	if !full {
		s.subs[r.ID] = sub
	}
	s.mu.Unlock()
	switch {
	case full:
		sub.cancel()
		return s.write(wire.Refusal{ID: r.ID, Code: wire.RequestInternal, Reason: fmt.Sprintf("There are %d subscriptions already.", maxSubscriptions)}.Message(wire.SubscribeError))
	case r.Forward == 0:
		return sub.Reject(wire.RequestNotSupported, "Subscriptions without objects are not supported.")
	}
	s.handler.Subscribed(sub)
	return nil
}

// named takes a PUBLISH_NAMESPACE or a SUBSCRIBE_NAMESPACE.
func (s *Session) named(m wire.Message) error {
	a, err := wire.ParseAnnouncement(m.Body)
	if err != nil {
		return err
	}
	if err := s.admit(a.ID); err != nil {
		return err
	}
	if m.Type == wire.PublishNamespace {
		if err := s.handler.Announced(a.Namespace); err != nil {
			return s.write(wire.Refusal{ID: a.ID, Code: wire.RequestUnauthorized, Reason: err.Error()}.Message(wire.PublishNamespaceError))
		}
		return s.write(wire.Number(wire.PublishNamespaceOK, a.ID))
	}
	if err := s.write(wire.Number(wire.SubscribeNamespaceOK, a.ID)); err != nil {
		return err
	}
	for _, ns := range s.handler.Namespaces(a.Namespace) {
		id, err := s.newID()
		if err != nil {
			return nil // the peer grants no ids: it does not want to hear of any
		}
		if err := s.write(wire.Announcement{ID: id, Namespace: ns}.Message(wire.PublishNamespace)); err != nil {
			return err
		}
	}
	return nil
}

// unsupported refuses what this session does not offer.
func (s *Session) unsupported(m wire.Message) error {
	id, err := wire.ParseNumber(m.Body)
	if err != nil {
		return err
	}
	if err := s.admit(id); err != nil {
		return err
	}
	answer := map[wire.Type]wire.Type{wire.Fetch: wire.FetchError, wire.TrackStatus: wire.TrackStatusError, wire.Publish: wire.PublishError}[m.Type]
	return s.write(wire.Refusal{ID: id, Code: wire.RequestNotSupported, Reason: "Not supported here: use SUBSCRIBE and PUBLISH_NAMESPACE."}.Message(answer))
}

// answered hands an answer to whoever asked.
func (s *Session) answered(m wire.Message) error {
	var r reply
	var id uint64
	var err error
	switch m.Type {
	case wire.SubscribeOK:
		r.ok, err = wire.ParseAccepted(m.Body)
		id = r.ok.ID
	case wire.PublishNamespaceOK:
		id, err = wire.ParseNumber(m.Body)
	default:
		var refused wire.Refusal
		refused, err = wire.ParseRefusal(m.Body)
		id, r.err = refused.ID, refused
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting, ok := s.asked[id]
	if !ok {
		return nil // who asked has gone, or it was an announcement
	}
	delete(s.asked, id)
	if t := s.byID[id]; t != nil && m.Type == wire.SubscribeOK {
		if _, used := s.tracks[r.ok.Alias]; used {
			return fmt.Errorf("%w: alias %d twice", wire.ErrMalformed, r.ok.Alias)
		}
		t.alias = r.ok.Alias
		s.tracks[t.alias] = t
		close(s.changed)
		s.changed = make(chan struct{})
	}
	waiting <- r
	return nil
}

// numbered takes messages that begin with the number of what they are about.
func (s *Session) numbered(m wire.Message) error {
	id, err := wire.ParseNumber(m.Body)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m.Type {
	case wire.Unsubscribe:
		if sub := s.subs[id]; sub != nil {
			sub.cancel()
			delete(s.subs, id)
		}
	case wire.PublishDone:
		if t := s.byID[id]; t != nil {
			t.finish()
		}
	case wire.MaxRequestID:
		s.allowed = max(s.allowed, id)
	}
	return nil
}

// errNoID says that the peer grants no further request.
var errNoID = errors.New("the peer takes no further requests")

// newID is the id of a request of ours.
func (s *Session) newID() (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next >= s.allowed {
		return 0, errNoID
	}
	id := s.next
	s.next += 2
	return id, nil
}

// ask sends a request and waits for its answer. prepare, if there is one, is called
// before the answer can come.
func (s *Session) ask(ctx context.Context, m func(id uint64) wire.Message, prepare func(id uint64)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	id, err := s.newID()
	if err != nil {
		return err
	}
	waiting := make(chan reply, 1)
	s.mu.Lock()
	s.asked[id] = waiting
	if prepare != nil {
		prepare(id)
	}
	s.mu.Unlock()
	defer s.unasked(id)
	if err := s.write(m(id)); err != nil {
		return err
	}
	select {
	case r := <-waiting:
		return r.err
	case <-s.conn.Context().Done():
		return errGone
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unasked forgets a request for whose answer nobody waits.
func (s *Session) unasked(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asked, id)
}

// Announce tells the peer that we publish below ns, and waits for its consent.
func (s *Session) Announce(ctx context.Context, ns wire.Namespace) error {
	err := s.ask(ctx, func(id uint64) wire.Message {
		return wire.Announcement{ID: id, Namespace: ns}.Message(wire.PublishNamespace)
	}, nil)
	return err
}
