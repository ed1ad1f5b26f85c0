package outbound

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// fakeDNS is a name server on a real socket. It answers each A question with
// the next of its addresses, and the last one for ever after; it knows no AAAA.
type fakeDNS struct {
	answers []netip.Addr
	asked   atomic.Int32
}

// resolver starts the server and returns a resolver that asks it alone. No
// answers: every name is unknown.
func (f *fakeDNS) resolver(t *testing.T) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go f.serve(conn)
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func (f *fakeDNS) serve(conn net.PacketConn) {
	buffer := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		var query dnsmessage.Message
		if query.Unpack(buffer[:n]) != nil || len(query.Questions) == 0 {
			continue
		}
		if reply, err := f.answer(query); err == nil {
			_, _ = conn.WriteTo(reply, from)
		}
	}
}

func (f *fakeDNS) answer(query dnsmessage.Message) ([]byte, error) {
	question := query.Questions[0]
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: query.ID, Response: true, RecursionAvailable: true},
		Questions: query.Questions,
	}
	switch {
	case len(f.answers) == 0:
		reply.RCode = dnsmessage.RCodeNameError
	case question.Type == dnsmessage.TypeA:
		next := min(int(f.asked.Add(1)), len(f.answers)) - 1
		reply.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: question.Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET},
			Body:   &dnsmessage.AResource{A: f.answers[next].As4()},
		}}
	}
	return reply.Pack()
}
