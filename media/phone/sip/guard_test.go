package sip

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func TestEachAddressIsCountedForItself(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000, 0)
	r := rate{most: 2, now: func() time.Time { return now }}
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	if !r.allow(a) || !r.allow(netip.MustParseAddr("::ffff:192.0.2.1")) || r.allow(a) || !r.allow(b) {
		t.Error("not two of each")
	}
	six, same := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::ffff")
	if !r.allow(six) || !r.allow(same) || r.allow(six) {
		t.Error("a /64 is not one address")
	}
	now = now.Add(time.Second)
	if !r.allow(a) {
		t.Error("refused in the next second too")
	}
	for i := range maxRated + 10 {
		r.allow(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}))
	}
	if len(r.counts) > maxRated+1 || r.allow(netip.MustParseAddr("198.51.100.1")) {
		t.Errorf("%d addresses are remembered", len(r.counts))
	}
}

// What is too large, or one too many of an address, is dropped before it is parsed.
func TestDatagramsThatAreTooLargeOrTooManyAreDropped(t *testing.T) {
	t.Parallel()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := net.Dial("udp", server.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	now := time.Unix(1_000, 0)
	g := &guarded{PacketConn: server, rate: &rate{most: 1, now: func() time.Time { return now }}}
	for _, text := range [][]byte{make([]byte, maxMessage+1), []byte("first"), []byte("second")} {
		if _, err := client.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	room := make([]byte, 1<<16)
	if n, _, err := g.ReadFrom(room); err != nil || string(room[:n]) != "first" {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := server.SetReadDeadline(time.Now()); err != nil { // the second is there: it is dropped, and nothing follows
		t.Fatal(err)
	}
	if n, _, err := g.ReadFrom(room); err == nil {
		t.Errorf("%q passed", room[:n])
	}
}

// A connection ends with the message that is one too many of its address, wherever its
// parts are cut, and with one that the other side does not read.
func TestConnectionsThatAskTooMuchEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		left := 0
		g := &gated{Conn: ours, rate: &rate{most: 2, now: time.Now}, addr: netip.MustParseAddr("192.0.2.1"), leave: func() { left++ }}
		go func() {
			for _, part := range []string{"A\r\n\r\nB\r", "\n\r", "\nC\r\n", "\r\n"} {
				_, _ = theirs.Write([]byte(part))
			}
		}()
		room := make([]byte, 64)
		for i := range 4 {
			_, err := g.Read(room)
			if want := i == 3; (err != nil) != want {
				t.Errorf("part %d: %v", i, err)
			}
		}
		if _, err := g.Write([]byte("unread")); !errors.Is(err, os.ErrDeadlineExceeded) || left != 1 {
			t.Errorf("%v, left %d times", err, left)
		}
		if _, err := theirs.Read(room); !errors.Is(err, io.EOF) {
			t.Errorf("still open: %v", err)
		}
	})
}

func TestANonceIsTakenOnce(t *testing.T) {
	t.Parallel()
	u := used{now: time.Now}
	if !u.first("n", 1) || u.first("n", 1) || !u.first("n", 2) || !u.first("m", 1) {
		t.Error("not once each")
	}
}
