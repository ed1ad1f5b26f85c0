package sip

import (
	"context"
	"net/netip"
	"strconv"
	"time"

	"github.com/emiago/sipgo"
	"github.com/emiago/sipgo/sip"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/phone"
	"sluice.dev/sluice/media/phone/audio"
	"sluice.dev/sluice/media/phone/sdp"
	"sluice.dev/sluice/platform/apierror"
)

// patience bounds what we do for a message before its call begins.
const patience = 10 * time.Second

// once answers a request without keeping anything: the answer is not sent again by
// itself, so that nobody is sent more than was sent to us.
func (s *Server) once(req *sip.Request, tx sip.ServerTransaction, status int, text string, headers ...sip.Header) {
	res := sip.NewResponseFromRequest(req, status, text, nil)
	for _, h := range headers {
		res.AppendHeader(h)
	}
	kept, ok := tx.(*sip.ServerTx)
	if !ok || kept == nil {
		return
	}
	if err := kept.Connection().WriteMsg(res); err != nil {
		s.cfg.Log.Debug("an answer was not sent", "cause", err)
	}
}

// refuse answers with no.
func (s *Server) refuse(req *sip.Request, tx sip.ServerTransaction, no *refused) {
	var headers []sip.Header
	if no.challenge != "" {
		headers = append(headers, sip.NewHeader("WWW-Authenticate", no.challenge))
	}
	s.once(req, tx, no.status, no.text, headers...)
}

// begins reads where a request comes from that begins something; false: it is one too
// many. By UDP it is dropped then, and comes again; by TCP it would not, and is refused.
func (s *Server) begins(req *sip.Request, tx sip.ServerTransaction) (netip.AddrPort, bool) {
	from, ok := addrOf(req)
	if ok && s.requests.allow(from.Addr()) {
		return from, true
	}
	if sip.IsReliable(req.Transport()) {
		s.once(req, tx, 503, "Service Unavailable", sip.NewHeader("Retry-After", "1"))
	}
	return from, false
}

// onInvite takes a call, and returns when it has ended.
func (s *Server) onInvite(req *sip.Request, tx sip.ServerTransaction) {
	if call := s.find(req); call != nil {
		s.again(call, req, tx)
		return
	}
	from, ok := s.begins(req, tx)
	if !ok {
		return
	}
	if to := req.To(); to == nil || to.Params.Has("tag") || req.Contact() == nil || req.From() == nil || req.CSeq() == nil {
		s.once(req, tx, 481, "Call/Transaction Does Not Exist")
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l, no := s.admit(ctx, req, from, req.Recipient.User)
	if no != nil {
		s.refuse(req, tx, no)
		return
	}
	if !s.begun() {
		s.refuse(req, tx, unavailable)
		return
	}
	defer s.sessions.Done()
	s.take(ctx, req, tx, l, from)
}

// turnAway refuses a call of somebody whom the line knows, and tells its account.
func (s *Server) turnAway(ctx context.Context, req *sip.Request, tx sip.ServerTransaction, l phone.Line, why phone.Reason) {
	status := map[phone.Reason]refused{phone.Busy: {status: 486, text: "Busy Here"}, phone.NoCodec: {status: 488, text: "Not Acceptable Here"},
		phone.TooMany: {status: 503, text: "Service Unavailable"}}[why]
	var headers []sip.Header
	if why == phone.TooMany {
		headers = append(headers, sip.NewHeader("Retry-After", "30"))
	}
	s.once(req, tx, status.status, status.text, headers...)
	if err := s.cfg.Service.Refuse(ctx, l, remoteOf(req), why); err != nil {
		s.cfg.Log.WarnContext(ctx, "a refused call was not kept", "cause", err)
	}
}

// take takes the call of somebody whom the line lets call.
func (s *Server) take(ctx context.Context, req *sip.Request, tx sip.ServerTransaction, l phone.Line, from netip.AddrPort) {
	offer, err := sdp.Read(req.Body())
	if err != nil {
		s.turnAway(ctx, req, tx, l, phone.NoCodec)
		return
	}
	leave, ok := s.enter(l.Owner, from.Addr())
	if !ok {
		s.turnAway(ctx, req, tx, l, phone.TooMany)
		return
	}
	defer leave()
	c, err := s.cfg.Service.Begin(ctx, l, remoteOf(req))
	switch {
	case phone.IsBusy(err):
		s.turnAway(ctx, req, tx, l, phone.Busy)
		return
	case apierror.Code(err) == decision.Stream003:
		s.turnAway(ctx, req, tx, l, phone.TooMany)
		return
	case err != nil:
		s.cfg.Log.WarnContext(ctx, "a call was refused", "cause", err)
		s.refuse(req, tx, unavailable)
		return
	}
	state, why := s.answer(ctx, req, tx, l, c, offer, from)
	s.ended(c, state, why)
}

// enter takes the places of a call; leave gives them back.
func (s *Server) enter(owner string, addr netip.Addr) (leave func(), ok bool) {
	account, ok := s.accounts.TryEnter(owner)
	if !ok {
		return nil, false
	}
	source, ok := s.sources.TryEnter(group(addr).String())
	if !ok {
		account()
		return nil, false
	}
	return func() { source(); account() }, true
}

// answer rings, answers and holds a call until it ends.
func (s *Server) answer(ctx context.Context, req *sip.Request, tx sip.ServerTransaction, l phone.Line, c phone.Call, offer sdp.Session, from netip.AddrPort) (state string, why phone.Reason) {
	ua := &sipgo.DialogUA{Client: s.client, ContactHDR: s.contact(from.Addr(), req.Transport()), RewriteContact: true}
	dialog, err := ua.ReadInvite(req, tx)
	if err != nil {
		s.refuse(req, tx, badRequest)
		return phone.Failed, phone.Canceled
	}
	call := s.newSession(c, l, dialog, from)
	defer s.forget(call)
	s.remember(call, dialog.ID)
	if err := dialog.Respond(sip.StatusRinging, "Ringing", nil); err != nil {
		return phone.Failed, phone.Canceled
	}
	if err := call.open(ctx, offer); err != nil {
		s.cfg.Log.WarnContext(ctx, "the sound of a call cannot be published", "call", c.ID, "cause", err)
		s.once(dialog.InviteRequest, tx, 480, "Temporarily Unavailable")
		return phone.Failed, phone.Faulty
	}
	defer call.close()
	if err := dialog.RespondSDP(offer.Answer(call.local)); err != nil {
		return phone.Failed, phone.Canceled // canceled, or the answer was never heard
	}
	return call.hold()
}

// find finds the call that a request belongs to, or nil.
func (s *Server) find(req *sip.Request) *session {
	as, err := sip.DialogIDFromRequestUAS(req)
	ac, other := sip.DialogIDFromRequestUAC(req)
	if err != nil || other != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.calls[as]; c != nil {
		return c
	}
	return s.calls[ac]
}

// again answers an offer within a call: what was agreed upon stays.
func (s *Server) again(call *session, req *sip.Request, tx sip.ServerTransaction) {
	answer := call.current()
	if answer.Codec.Name == "" {
		s.respond(tx, sip.NewResponseFromRequest(req, 491, "Request Pending", nil)) // the first is not answered yet
		return
	}
	offer, err := sdp.Read(req.Body())
	if len(req.Body()) > 0 && (err != nil || offer.Codec.Name != answer.Codec.Name) {
		s.respond(tx, sip.NewResponseFromRequest(req, 488, "Not Acceptable Here", nil))
		return
	}
	if err == nil {
		answer = offer
		call.agree(offer)
	}
	res := sip.NewSDPResponseFromRequest(req, answer.Answer(call.local))
	contact := s.contact(call.from.Addr(), req.Transport())
	res.AppendHeader(&contact)
	s.respond(tx, res)
}

func (s *Server) respond(tx sip.ServerTransaction, res *sip.Response) {
	if err := tx.Respond(res); err != nil {
		s.cfg.Log.Debug("an answer was not sent", "cause", err)
	}
}

// onAck begins a call whose answer was heard.
func (s *Server) onAck(req *sip.Request, tx sip.ServerTransaction) {
	if call := s.find(req); call != nil {
		if d, ok := call.dialog.(*sipgo.DialogServerSession); ok {
			_ = d.ReadAck(req, tx) // of another INVITE within the call
		}
	}
}

// onBye ends a call.
func (s *Server) onBye(req *sip.Request, tx sip.ServerTransaction) {
	call := s.find(req)
	if call == nil {
		s.unknown(req, tx)
		return
	}
	call.stop(phone.ByCaller)
	if err := call.dialog.ReadBye(req, tx); err != nil {
		s.cfg.Log.Debug("a BYE was not answered", "cause", err)
	}
}

// onInfo hears a key.
func (s *Server) onInfo(req *sip.Request, tx sip.ServerTransaction) {
	call := s.find(req)
	if call == nil {
		s.unknown(req, tx)
		return
	}
	kind := ""
	if h := req.ContentType(); h != nil {
		kind = h.Value()
	}
	if key, ok := audio.ReadInfo(kind, req.Body()); ok {
		call.pressed(key, "info")
	}
	s.respond(tx, sip.NewResponseFromRequest(req, 200, "OK", nil))
}

// onRegister tells a telephone whether its password is right. Nothing is kept: calls do
// not go to telephones that have registered.
func (s *Server) onRegister(req *sip.Request, tx sip.ServerTransaction) {
	from, ok := s.begins(req, tx)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if req.GetHeader("Authorization") == nil {
		s.refuse(req, tx, s.challenge(from, s.cfg.Service.Now(), false))
		return
	}
	if _, no := s.admit(ctx, req, from, ""); no != nil {
		s.refuse(req, tx, no)
		return
	}
	const most = 600 // seconds
	lasts := most
	if h := req.GetHeader("Expires"); h != nil {
		if n, err := strconv.Atoi(h.Value()); err == nil {
			lasts = min(max(n, 0), most)
		}
	}
	headers := []sip.Header{sip.NewHeader("Expires", strconv.Itoa(lasts))}
	if c := req.Contact(); c != nil && lasts > 0 {
		headers = append(headers, sip.NewHeader("Contact", "<"+c.Address.String()+">;expires="+strconv.Itoa(lasts)))
	}
	s.once(req, tx, 200, "OK", headers...)
}

// allowed are the methods that we know.
const allowed = "INVITE, ACK, BYE, CANCEL, INFO, OPTIONS, REGISTER"

// onOptions says that we are here.
func (s *Server) onOptions(req *sip.Request, tx sip.ServerTransaction) {
	if _, ok := s.begins(req, tx); ok {
		s.once(req, tx, 200, "OK", sip.NewHeader("Allow", allowed), sip.NewHeader("Accept", "application/sdp"))
	}
}

// onOther refuses the methods that we do not know.
func (s *Server) onOther(req *sip.Request, tx sip.ServerTransaction) {
	if _, ok := s.begins(req, tx); ok {
		s.once(req, tx, 405, "Method Not Allowed", sip.NewHeader("Allow", allowed))
	}
}

// unknown refuses what belongs to no call.
func (s *Server) unknown(req *sip.Request, tx sip.ServerTransaction) {
	if _, ok := s.begins(req, tx); ok {
		s.once(req, tx, 481, "Call/Transaction Does Not Exist")
	}
}

// ending is the end of a call that was not stored yet. Until it is, the stream of the
// call takes no other.
type ending struct {
	call  phone.Call
	state string
	why   phone.Reason
}

// ended stores the end of a call. What is not stored is tried again by settle, and at
// last ended by the process that comes after this one.
func (s *Server) ended(c phone.Call, state string, why phone.Reason) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.cfg.Service.End(ctx, c, state, why); err != nil {
		s.cfg.Log.Warn("the end of a call was not kept", "call", c.ID, "cause", err)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.unsettled = append(s.unsettled, ending{c, state, why})
	}
}

// settle stores the ends that were not stored.
func (s *Server) settle() {
	s.mu.Lock()
	left := s.unsettled
	s.unsettled = nil
	s.mu.Unlock()
	for _, e := range left {
		s.ended(e.call, e.state, e.why)
	}
}
