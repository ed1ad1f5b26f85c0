package sip

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"net/netip"

	"github.com/emiago/sipgo/sip"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/phone"
	"sluice.dev/sluice/media/phone/digest"
	"sluice.dev/sluice/platform/apierror"
)

// Wrong passwords of one address within a minute, after which it is refused unread.
const (
	maxFailures  = 10
	failuresLast = time.Minute
)

// refused is what somebody who may not call is told.
type refused struct {
	status    int
	text      string
	challenge string // empty: a password does not help
}

var (
	forbidden   = &refused{status: 403, text: "Forbidden"}
	notFound    = &refused{status: 404, text: "Not Found"}
	unavailable = &refused{status: 503, text: "Service Unavailable"}
	badRequest  = &refused{status: 400, text: "Bad Request"}
)

// admit finds the line that a request is for, if whoever sent it may call there. The
// answer to others is the same whether or not there is such a line. called is the user
// part of the address that was dialled, "" for a registration.
func (s *Server) admit(ctx context.Context, req *sip.Request, from netip.AddrPort, called string) (phone.Line, *refused) {
	now := s.cfg.Service.Now()
	header := req.GetHeader("Authorization")
	if header == nil {
		l, err := s.cfg.Service.LineByUser(ctx, called)
		if err == nil && l.Allows(from.Addr()) {
			return l, nil
		}
		if err != nil && apierror.Code(err) != decision.NotFound {
			s.cfg.Log.WarnContext(ctx, "a call was refused", "cause", err)
			return phone.Line{}, unavailable
		}
		return phone.Line{}, s.challenge(from, now, false)
	}
	source := group(from.Addr()).String()
	if s.failures.Last(source, now) != nil {
		return phone.Line{}, forbidden
	}
	answer, ok := digest.Read(header.Value())
	if !ok {
		return phone.Line{}, s.challenge(from, now, false)
	}
	l, secret, err := s.lineOf(ctx, answer.User)
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "a call was refused", "cause", err)
		return phone.Line{}, unavailable
	}
	switch s.key.Check(answer, secret, string(req.Method), from.Addr(), now) {
	case digest.Wrong:
		s.failures.Count(source, errFailed, maxFailures, now, now.Add(failuresLast))
		return phone.Line{}, forbidden
	case digest.Stale:
		return phone.Line{}, s.challenge(from, now, true)
	}
	if !s.used.first(answer.Nonce, answer.Count) {
		return phone.Line{}, s.challenge(from, now, true)
	}
	if l.ID == "" {
		return phone.Line{}, forbidden // nobody has the password of no line
	}
	if meant := userOf(answer.URI); called != "" && (called != l.ID && called != l.Number || meant != "" && meant != called) {
		return phone.Line{}, notFound // an answer may name the host alone, as SIPp's do
	}
	return l, nil
}

// errFailed is what is remembered of an address with wrong passwords.
var errFailed = apierror.Errorf(decision.RateLimited, "too many wrong passwords")

// challenge asks for a password.
func (s *Server) challenge(from netip.AddrPort, now time.Time, stale bool) *refused {
	return &refused{status: 401, text: "Unauthorized", challenge: s.key.Challenge(from.Addr(), now, stale)}
}

// lineOf finds the line with a password that is called name, and what checks that. For
// any other name there is a secret too, whose password nobody has.
func (s *Server) lineOf(ctx context.Context, name string) (phone.Line, digest.Secret, error) {
	if !ident.Valid("line", name) {
		return phone.Line{}, s.nobody, nil
	}
	l, err := s.cfg.Service.LineByUser(ctx, name)
	if apierror.Code(err) == decision.NotFound {
		return phone.Line{}, s.nobody, nil
	}
	if err != nil {
		return l, s.nobody, err
	}
	secret, ok := s.cfg.Service.CheckedBy(l)
	if !ok {
		return phone.Line{}, s.nobody, nil
	}
	return l, secret, nil
}

// userOf is the user part of a SIP address, or "".
func userOf(text string) string {
	var u sip.Uri
	if err := sip.ParseUri(text, &u); err != nil {
		return ""
	}
	return u.User
}

// remoteOf is who calls, as the request says: nobody vouches for it.
func remoteOf(req *sip.Request) string {
	from := req.From()
	if from == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString("sip:")
	if from.Address.User != "" {
		b.WriteString(from.Address.User + "@")
	}
	b.WriteString(from.Address.Host)
	return b.String()
}

// used remembers which answers to challenges were taken, so that nobody who overheard
// one calls with it too. It remembers them for as long as nonces live.
type used struct {
	now func() time.Time

	mu   sync.Mutex
	seen map[string]time.Time
}

// maxUsed bounds them: far more than calls that a password opened within a minute.
const maxUsed = 50_000

// first reports whether a nonce is used with this count for the first time.
func (u *used) first(nonce string, count int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	if len(u.seen) >= maxUsed {
		for k, t := range u.seen {
			if now.Sub(t) > 2*time.Minute {
				delete(u.seen, k)
			}
		}
		if len(u.seen) >= maxUsed {
			return false
		}
	}
	if u.seen == nil {
		u.seen = map[string]time.Time{}
	}
	name := nonce + " " + strconv.Itoa(count)
	_, seen := u.seen[name]
	u.seen[name] = now
	return !seen
}
