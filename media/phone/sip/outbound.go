package sip

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/emiago/sipgo"
	"github.com/emiago/sipgo/sip"
	"sluice.dev/sluice/media/phone"
	"sluice.dev/sluice/media/phone/sdp"
)

// ringing is how long the other side may take to answer.
const ringing = time.Minute

// dial makes an outbound call, and returns when it has ended.
func (s *Server) dial(ctx context.Context, c phone.Call) {
	state, why := s.dialled(ctx, c)
	s.ended(c, state, why)
}

// dialled is dial without its end.
func (s *Server) dialled(ctx context.Context, c phone.Call) (state string, why phone.Reason) {
	l, err := s.cfg.Service.LineFor(ctx, c)
	if err != nil {
		return phone.Failed, phone.Faulty
	}
	trunk, err := s.trunk(ctx)
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "the trunk is not found", "cause", err)
		return phone.Failed, phone.Unreachable
	}
	leave, ok := s.enter(c.Owner, trunk.Addr())
	if !ok {
		return phone.Failed, phone.TooMany
	}
	defer leave()
	call := s.newSession(c, l, nil, trunk)
	if err := call.listen(); err != nil {
		s.cfg.Log.WarnContext(ctx, "a call was not made", "call", c.ID, "cause", err)
		return phone.Failed, phone.Faulty
	}
	defer func() { _ = call.conn.Close() }()
	s.remember(call, c.ID) // until its dialog has an id
	defer s.forget(call)
	dialog, why := s.invite(ctx, call, trunk)
	if why != "" {
		return phone.Failed, why
	}
	defer func() { _ = dialog.Close() }()
	return s.connected(ctx, call, dialog)
}

// trunk is the address of the trunk.
func (s *Server) trunk(ctx context.Context) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(s.cfg.Trunk.Host)
	if err != nil {
		host, port = s.cfg.Trunk.Host, "5060"
	}
	n, err := net.DefaultResolver.LookupPort(ctx, "udp", port)
	if err != nil {
		return netip.AddrPort{}, err
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	addr := found[0].Unmap()
	s.trunkAddr.Store(&addr)
	return netip.AddrPortFrom(addr, uint16(n)), nil // #nosec G115 -- a port
}

// invite rings the other side and waits for its answer; why is why there is none.
func (s *Server) invite(ctx context.Context, call *session, trunk netip.AddrPort) (*sipgo.DialogClientSession, phone.Reason) {
	ctx, cancel := context.WithTimeout(ctx, ringing)
	defer cancel()
	stopped := make(chan phone.Reason, 1)
	finished := make(chan struct{})
	defer close(finished)
	go func() {
		select {
		case why := <-call.why:
			stopped <- why
			cancel()
		case <-finished:
		}
	}()
	ua := &sipgo.DialogUA{Client: s.client, ContactHDR: s.contact(trunk.Addr(), s.cfg.Trunk.Transport), RewriteContact: true}
	req, err := s.request(call, trunk)
	if err != nil {
		return nil, phone.Faulty
	}
	dialog, err := ua.WriteInvite(ctx, req)
	if err == nil {
		err = dialog.WaitAnswer(ctx, sipgo.AnswerOptions{Username: s.cfg.Trunk.User, Password: s.cfg.Trunk.Password})
	}
	select {
	case why := <-stopped:
		if err != nil {
			return nil, why
		}
		call.stop(why) // answered meanwhile: it is hung up in its turn
	default:
	}
	if err == nil {
		return dialog, ""
	}
	if res, ok := errors.AsType[*sipgo.ErrDialogResponse](err); ok {
		return nil, meaning(res.Res.StatusCode)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, phone.NoAnswer
	}
	s.cfg.Log.WarnContext(ctx, "a call was not made", "call", call.call.ID, "cause", err)
	return nil, phone.Unreachable
}

// request is the INVITE of call.
func (s *Server) request(call *session, trunk netip.AddrPort) (*sip.Request, error) {
	var to, from sip.Uri
	if err := sip.ParseUri(call.call.Remote, &to); err != nil {
		return nil, err
	}
	from = sip.Uri{Scheme: "sip", User: s.cfg.Trunk.User, Host: to.Host}
	if from.User == "" {
		from.User = call.line.ID
		if call.line.Number != "" {
			from.User = call.line.Number
		}
	}
	req := sip.NewRequest(sip.INVITE, to)
	header := &sip.FromHeader{Address: from, Params: sip.NewParams()}
	header.Params.Add("tag", sip.GenerateTagN(16))
	req.AppendHeader(header)
	req.AppendHeader(sip.NewHeader("Content-Type", "application/sdp"))
	req.AppendHeader(sip.NewHeader("Allow", allowed))
	req.SetBody(sdp.Offer(call.local))
	req.SetTransport(strings.ToUpper(s.cfg.Trunk.Transport))
	req.SetDestination(trunk.String())
	return req, nil
}

// meaning is what a refusal of the other side means.
func meaning(status int) phone.Reason {
	switch status {
	case 486, 600:
		return phone.Busy
	case 408, 480, 487:
		return phone.NoAnswer
	case 404, 484, 410, 502, 503, 604:
		return phone.Unreachable
	case 488, 606:
		return phone.NoCodec
	}
	return phone.Declined
}

// connected holds a call that the other side has answered.
func (s *Server) connected(ctx context.Context, call *session, dialog *sipgo.DialogClientSession) (state string, why phone.Reason) {
	s.mu.Lock()
	delete(s.calls, call.id)
	s.mu.Unlock()
	call.dialog = dialog
	s.remember(call, dialog.ID)
	if err := dialog.Ack(ctx); err != nil {
		return phone.Failed, phone.Unreachable
	}
	answer, err := sdp.Read(dialog.InviteResponse.Body())
	if err != nil {
		call.bye()
		return phone.Failed, phone.NoCodec
	}
	if err := call.open(ctx, answer); err != nil {
		s.cfg.Log.WarnContext(ctx, "the sound of a call cannot be published", "call", call.call.ID, "cause", err)
		call.bye()
		return phone.Failed, phone.Faulty
	}
	defer call.close()
	return call.hold()
}
