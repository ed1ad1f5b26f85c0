package sip

import (
	"net"
	"net/netip"
	"testing"
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

func TestANonceIsTakenOnce(t *testing.T) {
	t.Parallel()
	u := used{now: time.Now}
	if !u.first("n", 1) || u.first("n", 1) || !u.first("n", 2) || !u.first("m", 1) {
		t.Error("not once each")
	}
}
