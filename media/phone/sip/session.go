package sip

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/emiago/sipgo"
	"github.com/emiago/sipgo/sip"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/media/phone"
	"sluice.dev/sluice/media/phone/audio"
	"sluice.dev/sluice/media/phone/sdp"
	"sluice.dev/sluice/media/phone/source"
)

// dialog is what the library knows of a call, whoever began it.
type dialog interface {
	Context() context.Context
	Bye(ctx context.Context) error
	ReadBye(req *sip.Request, tx sip.ServerTransaction) error
}

// session is a call that we hold.
type session struct {
	server *Server
	call   phone.Call
	line   phone.Line
	dialog dialog
	from   netip.AddrPort // who signals

	id    string // of the dialog, under which server knows it
	door  string // the path that it publishes to
	why   chan phone.Reason
	keys  chan pressed
	conn  *net.UDPConn
	local netip.AddrPort // that the other side is told
	src   *source.Source

	mu     sync.Mutex
	agreed sdp.Session
	sound  *audio.Buffer
	decode *audio.Decoder
	heard  time.Time      // when sound came last
	remote netip.AddrPort // where it comes from; invalid: not known yet
}

// pressed is a key, and how it came.
type pressed struct {
	audio.Key
	method string
}

// maxKeys is how many keys may wait to be told of; more are dropped.
const maxKeys = 32

func (s *Server) newSession(c phone.Call, l phone.Line, d dialog, from netip.AddrPort) *session {
	return &session{server: s, call: c, line: l, dialog: d, from: from, why: make(chan phone.Reason, 1), keys: make(chan pressed, maxKeys)}
}

// remember has requests of the dialog id find c.
func (s *Server) remember(c *session, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.id = id
	s.calls[id], s.byID[c.call.ID] = c, c
	if s.closing {
		c.stop(phone.Interrupted)
	}
}

// forget undoes remember.
func (s *Server) forget(c *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, c.id)
	delete(s.byID, c.call.ID)
}

// stop has the call end. The first reason holds.
func (c *session) stop(why phone.Reason) {
	select {
	case c.why <- why:
	default:
	}
}

// pressed hands a key on.
func (c *session) pressed(k audio.Key, method string) {
	select {
	case c.keys <- pressed{k, method}:
	default:
	}
}

// agree takes what both sides have agreed upon.
func (c *session) agree(with sdp.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.agreed = with
	if !c.remote.IsValid() && with.Addr.Addr() == c.from.Addr() {
		c.remote = with.Addr // it has shown that it is there by answering us
	}
}

// current is what both sides have agreed upon.
func (c *session) current() sdp.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.agreed
}

// open takes a port for the sound of c and begins to publish.
func (c *session) open(ctx context.Context, with sdp.Session) error {
	s := c.server
	var err error
	if c.decode, err = audio.NewDecoder(with.Codec); err != nil {
		return fmt.Errorf("decode %s: %w", with.Codec.Name, err)
	}
	c.sound = audio.NewBuffer(c.decode.Rate)
	if c.conn == nil {
		if err := c.listen(); err != nil {
			return err
		}
	}
	c.agree(with)
	stream, err := streams.ByID(ctx, s.cfg.Service.DB, c.call.StreamID)
	if err != nil {
		_ = c.conn.Close()
		return err
	}
	key := ident.NewSecret("call").Text
	c.door = "live/" + stream.PlaybackID
	s.mu.Lock()
	s.doors[c.door] = sha256.Sum256([]byte(key))
	s.mu.Unlock()
	c.src, err = source.Open(ctx, source.Config{FFmpeg: s.cfg.FFmpeg, Dir: s.cfg.Dir, RTMP: s.cfg.RTMP, Path: c.door, Key: key, Rate: c.decode.Rate,
		Longest: time.Duration(c.line.MaxDuration)*time.Second + time.Minute})
	if err != nil {
		c.shut()
	}
	return err
}

// shut takes back what open has given.
func (c *session) shut() {
	c.server.mu.Lock()
	delete(c.server.doors, c.door) // the engine asks only when it has heard two seconds
	c.server.mu.Unlock()
	_ = c.conn.Close()
}

// close ends the sound.
func (c *session) close() {
	c.src.Close()
	c.shut()
}

// errPorts says that all ports for sound are in use.
var errPorts = errors.New("no port for sound is free: widen SLUICE_SIP_MEDIA_PORTS")

// listen takes the next free port for sound.
func (c *session) listen() error {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	for range int(s.cfg.Last-s.cfg.First) + 1 {
		s.port++
		if s.port < s.cfg.First || s.port > s.cfg.Last {
			s.port = s.cfg.First
		}
		conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(s.listen.Addr(), s.port)))
		if err == nil {
			c.conn, c.local = conn, netip.AddrPortFrom(s.own(c.from.Addr()), s.port)
			return nil
		}
	}
	return errPorts
}

// hold holds an answered call until it ends, and says how it did.
func (c *session) hold() (state string, why phone.Reason) {
	s := c.server
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := s.cfg.Service.Answered(ctx, c.call, c.current().Codec.Name); err != nil {
		s.cfg.Log.Warn("the answer of a call was not kept", "call", c.call.ID, "cause", err)
		c.bye()
		return phone.Failed, phone.Faulty
	}
	var working sync.WaitGroup
	working.Go(c.receive)
	working.Go(func() { c.tell(ctx) })
	why = c.pump()
	if why != phone.ByCaller {
		c.bye()
	}
	c.close()
	cancel()
	working.Wait()
	if why == phone.Interrupted {
		return phone.Failed, why
	}
	return phone.Completed, why
}

// bye hangs up.
func (c *session) bye() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err := error(nil)
	if called, ok := c.dialog.(*sipgo.DialogServerSession); ok {
		err = byeToCaller(ctx, called)
	} else {
		err = c.dialog.Bye(ctx)
	}
	if err != nil {
		c.server.cfg.Log.Debug("a BYE was not answered", "call", c.call.ID, "cause", err)
	}
}

// byeToCaller hangs up on who has called. It goes to where the call came from, with the
// route that the caller has named as headers alone: the library would send it to the
// first of them, wherever that is.
func byeToCaller(ctx context.Context, d *sipgo.DialogServerSession) error {
	bye := sip.NewRequest(sip.BYE, d.InviteRequest.Contact().Address)
	for _, hop := range d.InviteRequest.GetHeaders("Record-Route") {
		bye.AppendHeader(sip.NewHeader("Route", hop.Value()))
	}
	for d.InviteRequest.RemoveHeader("Record-Route") {
	}
	return d.WriteBye(ctx, bye)
}

// tell tells the account of keys until ctx ends, and of those that wait then.
func (c *session) tell(ctx context.Context) {
	for {
		select {
		case k := <-c.keys:
			c.told(k)
		case <-ctx.Done():
			for len(c.keys) > 0 {
				c.told(<-c.keys)
			}
			return
		}
	}
}

// told tells the account of one key.
func (c *session) told(k pressed) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.server.cfg.Service.Digit(ctx, c.call, k.Digit, k.Lasted, k.method); err != nil {
		c.server.cfg.Log.Warn("a key was not told of", "call", c.call.ID, "cause", err)
	}
}
