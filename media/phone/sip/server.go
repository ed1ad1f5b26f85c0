// Package sip speaks with telephones (RFC 3261): it takes the calls that lines allow,
// dials those that accounts ask for, and makes the sound of each the source of its
// stream. The protocol is github.com/emiago/sipgo's; what is ours is who may call, what
// becomes of the sound, and what strangers may cost us.
//
// Until a caller is known, each message is answered at most once, by a message of about
// its size, to where it came from: a forged source gains nothing. Sound is taken from
// and sent to the address that signals, or the one that its session description names
// once sound came from there.
package sip

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/emiago/sipgo"
	"github.com/emiago/sipgo/sip"
	"sluice.dev/sluice/media/phone"
	"sluice.dev/sluice/media/phone/digest"
	"sluice.dev/sluice/platform/limits/fairshare"
	"sluice.dev/sluice/platform/limits/refusals"
)

// Config says where telephones reach us and what is behind.
type Config struct {
	// Listen is where SIP is taken, UDP and TCP, such as 127.0.0.1:5060. Required.
	Listen string
	// PublicIP is the address that telephones are told, for SIP and for sound. Zero:
	// that of Listen, or where it is none the machine's own on the way to each.
	PublicIP netip.Addr
	// First and Last are the UDP ports for sound. Required.
	First, Last uint16
	Trunk       Trunk // where calls go out
	FFmpeg      string
	Dir         string // for ffmpeg's empty folders; empty: os.TempDir
	RTMP        string // host and port at which the media engine takes RTMP
	// Calls is how many are held at once; one account has a quarter, one address half.
	// 0: 40.
	Calls int
	// Silence is how long the other side may send no sound. 0: a minute.
	Silence time.Duration
	Service phone.Service
	Log     *slog.Logger // nil: slog.Default
}

// Trunk is the provider that calls go out through.
type Trunk struct {
	Host      string // with a port, where it is not 5060; empty: none
	User      string
	Password  string
	Transport string // udp or tcp
}

// Server is one.
type Server struct {
	cfg    Config
	client *sipgo.Client
	listen netip.AddrPort // as it is bound

	key       digest.Key
	nobody    digest.Secret // of names that no line has
	used      used          // nonces
	failures  refusals.Memory
	messages  rate
	requests  rate
	trunkAddr atomic.Pointer[netip.Addr] // where its name led last
	accounts  *fairshare.Pool
	sources   *fairshare.Pool

	mu        sync.Mutex
	calls     map[string]*session // by the id of the dialog
	byID      map[string]*session // by the id of the call
	doors     map[string][32]byte // hashes of the keys with which sources publish, by path
	port      uint16              // the last that was given out
	closing   bool                // no call begins any more
	unsettled []ending
	sessions  sync.WaitGroup
}

// The library's log would have a line for each message that strangers get wrong. And it
// sends no message by UDP that is larger than this: an answer repeats the ways that its
// request came by, and is due whatever they amount to.
func init() {
	sip.SetDefaultLogger(slog.New(slog.DiscardHandler))
	sip.UDPMTUSize = 2 * maxMessage
}

// New makes one that does nothing yet.
func New(c Config) *Server {
	if c.Calls == 0 {
		c.Calls = 40
	}
	if c.Silence == 0 {
		c.Silence = time.Minute
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	now := c.Service.Now
	return &Server{cfg: c, key: digest.NewKey(), nobody: digest.SecretOf("", fmt.Sprint(digest.NewKey())), used: used{now: now},
		messages: rate{most: maxMessages, now: now}, requests: rate{most: maxRequests, now: now},
		accounts: fairshare.New(fairshare.Config{Places: c.Calls}), sources: fairshare.New(fairshare.Config{Places: c.Calls, Share: max(1, c.Calls/2)}),
		calls: map[string]*session{}, byID: map[string]*session{}, doors: map[string][32]byte{}}
}

// Publishes reports whether key is the one with which a call publishes to a path of the
// media engine right now. It compares in constant time.
func (s *Server) Publishes(path, key string) bool {
	s.mu.Lock()
	want, ok := s.doors[path]
	s.mu.Unlock()
	got := sha256.Sum256([]byte(key))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1 && ok
}

// Run takes and makes calls until ctx ends, and hangs up those that are left. It fails
// when it cannot listen. Calls that a process before it left open are ended first: that
// it is gone shows in its address, which is free.
func (s *Server) Run(ctx context.Context) error {
	var lc net.ListenConfig
	stream, err := lc.Listen(ctx, "tcp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen for SIP: %w", err)
	}
	defer stream.Close()
	s.listen = stream.Addr().(*net.TCPAddr).AddrPort() // a TCP listener has no other
	packets, err := lc.ListenPacket(ctx, "udp", s.listen.String())
	if err != nil {
		return fmt.Errorf("listen for SIP: %w", err)
	}
	defer func() { _ = packets.Close() }()
	if err := s.cfg.Service.Interrupt(ctx); err != nil {
		return errors.Join(fmt.Errorf("end the calls of before: %w", err), packets.Close())
	}
	ua, server, err := s.agent()
	if err != nil {
		return errors.Join(err, packets.Close())
	}
	defer func() { _ = ua.Close() }()
	ctx, cancel := context.WithCancel(ctx)
	talking, stop := context.WithCancel(context.WithoutCancel(ctx)) // until those that are left have been hung up
	defer stop()
	ended := make(chan error, 2)
	go func() { ended <- serveUDP(talking, packets, &s.messages, server.ServeUDP) }()
	go func() { ended <- server.ServeTCP(&gate{Listener: stream, rate: &s.messages}) }()
	s.cfg.Log.InfoContext(ctx, "telephones are answered", "addr", s.listen, "ports", fmt.Sprintf("%d-%d", s.cfg.First, s.cfg.Last), "trunk", s.cfg.Trunk.Host)
	err = s.attend(ctx, ended)
	cancel()
	s.hangUpAll()
	s.sessions.Wait()
	s.settle()
	return err
}

// agent makes the library's part of s.
func (s *Server) agent() (*sipgo.UserAgent, *sipgo.Server, error) {
	parser := sip.NewParser()
	parser.MaxMessageLength = maxMessage
	ua, err := sipgo.NewUA(sipgo.WithUserAgent("sluice"), sipgo.WithUserAgentHostname(s.own(netip.Addr{}).String()), sipgo.WithUserAgentParser(parser),
		sipgo.WithUserAgentTransportLayerOptions(sip.WithTransportLayerTransports(sip.TransportsConfig{TCP: &sip.TransportTCP{DialerCreate: s.dialer}})))
	if err != nil {
		return nil, nil, fmt.Errorf("make a user agent: %w", err)
	}
	server, err := sipgo.NewServer(ua)
	if err != nil {
		return nil, nil, fmt.Errorf("make a user agent: %w", err)
	}
	if s.client, err = sipgo.NewClient(ua); err != nil {
		return nil, nil, fmt.Errorf("make a user agent: %w", err)
	}
	server.OnInvite(s.onInvite)
	server.OnAck(s.onAck)
	server.OnBye(s.onBye)
	server.OnInfo(s.onInfo)
	server.OnRegister(s.onRegister)
	server.OnOptions(s.onOptions)
	server.OnNoRoute(s.onOther)
	return ua, server, nil
}

// dialer connects the library by TCP, to the trunk alone: where a connection is gone, it
// would connect to whatever address the other side has named.
func (s *Server) dialer(local net.Addr) net.Dialer {
	return net.Dialer{Timeout: patience, LocalAddr: local, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if trunk := s.trunkAddr.Load(); err == nil && trunk != nil && to.Addr().Unmap() == *trunk {
			return nil
		}
		return errElsewhere
	}}
}

// errElsewhere says that an address is none that we connect to.
var errElsewhere = errors.New("not the address of the trunk")

// interval is the time between two looks at what accounts want.
const interval = time.Second

// attend does what accounts want, until ctx ends or we can listen no more.
func (s *Server) attend(ctx context.Context, ended <-chan error) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("listen for SIP: %w", errors.Join(err, net.ErrClosed))
		case <-tick.C:
			if err := s.step(ctx); err != nil && ctx.Err() == nil {
				s.cfg.Log.WarnContext(ctx, "calls out of step", "cause", err)
			}
		}
	}
}

// step looks once: it dials what is to be dialled and hangs up what is to end.
func (s *Server) step(ctx context.Context) error {
	s.settle()
	dial, hangup, err := s.cfg.Service.Wanted(ctx)
	for _, c := range dial {
		if ours, failed := s.cfg.Service.Claim(ctx, c); failed != nil || !ours {
			err = errors.Join(err, failed)
			continue
		}
		if !s.begun() {
			s.ended(c, phone.Failed, phone.Interrupted)
			continue
		}
		go func() {
			defer s.sessions.Done()
			s.dial(ctx, c)
		}()
	}
	for _, id := range hangup {
		s.mu.Lock()
		call := s.byID[id]
		s.mu.Unlock()
		if call != nil {
			call.stop(phone.ByOwner)
		}
	}
	return err
}

// begun counts a session that begins, whose end has to call s.sessions.Done; false: none
// begins any more.
func (s *Server) begun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		s.sessions.Add(1)
	}
	return !s.closing
}

// hangUpAll ends every call because this process does, and those that begin just now.
func (s *Server) hangUpAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	for _, c := range s.byID {
		c.stop(phone.Interrupted)
	}
}

// own is the address that a telephone at remote is told; of the zero address, that of
// the machine itself.
func (s *Server) own(remote netip.Addr) netip.Addr {
	switch {
	case s.cfg.PublicIP.IsValid():
		return s.cfg.PublicIP
	case !s.listen.Addr().IsUnspecified():
		return s.listen.Addr().Unmap()
	case remote.IsValid():
		// Nothing is sent: the kernel only says which way it would go.
		conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(remote, 9)))
		if err == nil {
			defer func() { _ = conn.Close() }()
			return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap() // a UDP socket has no other
		}
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// contact is where a telephone at remote sends what belongs to a call.
func (s *Server) contact(remote netip.Addr, transport string) sip.ContactHeader {
	h := sip.ContactHeader{Address: sip.Uri{Scheme: "sip", User: "sluice", Host: s.own(remote).String(), Port: int(s.listen.Port())}}
	if sip.NetworkToLower(transport) == "tcp" {
		h.Address.UriParams = sip.NewParams()
		h.Address.UriParams.Add("transport", "tcp")
	}
	return h
}

// addrOf is where a request came from.
func addrOf(req *sip.Request) (netip.AddrPort, bool) {
	addr, err := netip.ParseAddrPort(req.MessageData.Source())
	return netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port()), err == nil
}
