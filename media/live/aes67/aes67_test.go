package aes67

import (
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/pion/rtp"
	"sluice.dev/sluice/platform/limits/growth"
)

const dante = "v=0\r\no=- 1423986 1423994 IN IP4 169.254.98.63\r\ns=AOIP44-serial-1614 : 2\r\nc=IN IP4 239.65.45.154/32\r\nt=0 0\r\na=keywds:Dante\r\n" +
	"m=audio 5004 RTP/AVP 97\r\ni=2 channels: TxChan 0, TxChan 1\r\na=recvonly\r\na=rtpmap:97 L24/48000/2\r\na=ptime:1\r\n" +
	"a=ts-refclk:ptp=IEEE1588-2008:00-1D-C1-FF-FE-12-00-A4:0\r\na=mediaclk:direct=142410716\r\n"

func TestADanteDescription(t *testing.T) {
	t.Parallel()
	f, err := ParseSDP(dante)
	want := Flow{Name: "AOIP44-serial-1614 : 2", Address: netip.MustParseAddr("239.65.45.154"), Port: 5004, TTL: 32, Format: "L24", Channels: 2, Payload: 97, PTime: 1,
		Clock: "ptp=IEEE1588-2008:00-1D-C1-FF-FE-12-00-A4:0", Offset: 142410716}
	if err != nil || f != want {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestWhatADescriptionMustHave(t *testing.T) {
	t.Parallel()
	for old, new := range map[string]string{
		"v=0":                     "v=x",
		"m=audio":                 "m=video",
		"RTP/AVP":                 "RTP/SAVP",
		"L24/48000/2":             "L24/44100/2",
		"97 L24":                  "97 AM824",
		"48000/2":                 "48000/65",
		"audio 5004":              "audio 80",
		"IN IP4 239.65.45.154/32": "IN IP6 ff15::1",
		"a=ptime:1":               "a=ptime:1000",
		"a=recvonly":              "a=source-filter: excl IN IP4 239.65.45.154 192.0.2.1",
	} {
		text := strings.Replace(dante, old, new, 1)
		if text == dante {
			t.Fatalf("%q is not in the sample", old)
		}
		if f, err := ParseSDP(text); err == nil {
			t.Errorf("%s: %+v", new, f)
		}
	}
	if _, err := ParseSDP(strings.Repeat("v=0\r\n", 4000)); err == nil {
		t.Error("a description without end")
	}
}

func TestADescriptionOfOursReadsAsWritten(t *testing.T) {
	t.Parallel()
	here := netip.MustParseAddr("192.0.2.9")
	for _, f := range []Flow{
		{Name: "Show", Address: netip.MustParseAddr("239.69.1.2"), Port: 5004, TTL: 15, Format: "L24", Channels: 2, Payload: 97, PTime: 1, Source: here, Clock: "local", Offset: 9},
		{Name: "One", Address: netip.MustParseAddr("192.0.2.7"), Port: 6000, TTL: 1, Format: "L16", Channels: 1, Payload: 98, PTime: 0.125, Clock: "ptp=IEEE1588-2008:traceable"},
	} {
		if got, err := ParseSDP(f.SDP(here, 1, 2)); err != nil || got != f {
			t.Errorf("%+v, %v, want %+v", got, err, f)
		}
	}
}

func TestSourceFilters(t *testing.T) {
	t.Parallel()
	group := netip.MustParseAddr("239.1.1.1")
	for text, want := range map[string]string{" incl IN IP4 239.1.1.1 192.0.2.1": "192.0.2.1", "incl IN IP4 * 192.0.2.1": "192.0.2.1", "incl IN IP4 239.1.1.2 192.0.2.1": "invalid IP",
		"excl IN IP4 239.1.1.1 192.0.2.1": "invalid IP", "incl IN IP4 239.1.1.1 239.1.1.1": "invalid IP", "": "invalid IP", "incl IN IP4 239.1.1.1 192.0.2.1 192.0.2.2": "invalid IP"} {
		if got := sourceOf(text, group).String(); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
}

func TestClocks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"local": true, "ptp=IEEE1588-2008:00-1D-C1-FF-FE-12-00-A4:0": true, "ptp=IEEE1588-2019:traceable": true, "ntp=x": false, "local\r\na=x": false, "": false} {
		if ValidClock(text) != want {
			t.Errorf("%q", text)
		}
	}
}

func TestAnAnnouncementReadsAsWritten(t *testing.T) {
	t.Parallel()
	here := netip.MustParseAddr("192.0.2.9")
	a, err := ParseSAP(Announce(here, dante, false))
	gone, err2 := ParseSAP(Announce(here, dante, true))
	if err != nil || err2 != nil || a.SDP != dante || a.Origin != here || a.Gone || !gone.Gone || gone.Hash != a.Hash || a.Hash == 0 {
		t.Errorf("%+v, %v; %+v, %v", a, err, gone, err2)
	}
}

func TestPacketsThatAreNoAnnouncement(t *testing.T) {
	t.Parallel()
	good := Announce(netip.MustParseAddr("192.0.2.9"), dante, false)
	edit := func(i int, b byte) []byte {
		out := append([]byte{}, good...)
		out[i] = b
		return out
	}
	for name, b := range map[string][]byte{"empty": nil, "another version": edit(0, 2<<5), "encrypted": edit(0, 1<<5|2), "compressed": edit(0, 1<<5|1),
		"authentication beyond its end": edit(1, 255), "another payload": edit(8, 'x'), "IPv6 and too short": {1<<5 | 16, 0, 0, 1, 1, 2, 3, 4}} {
		if a, err := ParseSAP(b); err == nil {
			t.Errorf("%s: %+v", name, a)
		}
	}
	six := append([]byte{1<<5 | 16, 1, 0, 1}, make([]byte, 20)...)
	if a, err := ParseSAP(append(six, "v=0\r\n"...)); err != nil || a.SDP != "v=0\r\n" || !a.Origin.Is6() {
		t.Errorf("%+v, %v", a, err)
	}
}

// sine is a tone in a flow of one channel.
func sine(from int64, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(math.Sin(2 * math.Pi * 1000 * float64(from+int64(i)) / Rate))
	}
	return out
}

// roughest is the largest second difference of a signal: a click stands out of it.
func roughest(s []float32) (most float64) {
	for i := 2; i < len(s); i++ {
		most = max(most, math.Abs(float64(s[i]-2*s[i-1]+s[i-2])))
	}
	return most
}

// A sender whose crystal differs from ours by as much as crystals may is followed for
// a minute without a gap, a click or a longer delay.
func TestClocksThatDiffer(t *testing.T) {
	t.Parallel()
	for _, ppm := range []float64{-200, -50, 0, 50, 200} {
		b := NewBuffer(1, 20*Rate/1000)
		var heard []float32
		written, first := int64(0), true
		block := make([]float32, 48)
		for i := range int64(60 * 1000) { // milliseconds by our clock
			due := int64(float64(i+1) * 48 * (1 + ppm/1e6))
			for ; written+48 <= due; written += 48 {
				b.Write(written, sine(written, 48))
			}
			if b.Read(block) {
				heard = append(heard, block...)
				first = false
			} else if !first {
				t.Fatalf("%g ppm: a gap after %d ms", ppm, i)
			}
		}
		s := b.Stats()
		if got := float64(s.Adjusted) / 60 / Rate * 1e6; math.Abs(got-ppm) > 60 {
			t.Errorf("%g ppm: adjusted by %g", ppm, got)
		}
		if s.Late != 0 || s.Resets != 0 || roughest(heard) > 0.025 {
			t.Errorf("%g ppm: %+v, roughest %g", ppm, s, roughest(heard))
		}
	}
}

// packets makes n packets of a flow of one channel, each of them one value.
func packets(flow Flow, n int, first uint16, at uint32) [][]byte {
	p := packer{flow: flow}
	p.next = rtp.Header{Version: 2, PayloadType: flow.Payload, SSRC: 7, SequenceNumber: first, Timestamp: at}
	var out [][]byte
	for i := range n {
		frames := make([]float32, 48)
		for j := range frames {
			frames[j] = float32(i+1) / 1024
		}
		b, err := p.pack(frames)
		if err != nil {
			panic(err)
		}
		out = append(out, append([]byte{}, b...))
	}
	return out
}

var mono = Flow{Format: "L24", Channels: 1, Payload: 97, PTime: 1}

// values reads n packets' worth, and returns the first sample of each.
func values(b *Buffer, n int) (out []int) {
	block := make([]float32, 48)
	for range n {
		b.Read(block)
		out = append(out, int(block[20]*1024+0.5))
	}
	return out
}

func equal(a, b []int) bool {
	for i := range a {
		if len(a) != len(b) || a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// Order is restored, doubles are dropped, what is lost is silent, and counters wrap.
func TestPacketsInDisorder(t *testing.T) {
	t.Parallel()
	b := NewBuffer(1, 10*48)
	u := unpacker{flow: mono, buffer: b}
	all := packets(mono, 10, 65533, math.MaxUint32-100)
	for _, i := range []int{0, 2, 1, 3, 3, 5, 6, 9, 8} { // 4 and 7 are lost
		if err := u.take(all[i]); err != nil {
			t.Fatal(i, err)
		}
	}
	if got := values(b, 10); !equal(got, []int{1, 2, 3, 4, 0, 6, 7, 0, 9, 10}) {
		t.Errorf("%v", got)
	}
	if s := u.stats(); s.Lost < 1 || s.Lost > 2 || s.Resets != 0 || s.Refused != 0 {
		t.Errorf("%+v", s)
	}
}

func TestASenderThatBeginsAnew(t *testing.T) {
	t.Parallel()
	b := NewBuffer(1, 2*48)
	u := unpacker{flow: mono, buffer: b}
	for _, p := range packets(mono, 4, 1, 0) {
		if err := u.take(p); err != nil {
			t.Fatal(err)
		}
	}
	values(b, 2)
	for _, p := range packets(mono, 4, 1, 1<<31-5000) { // the same sender, elsewhere in time
		if err := u.take(p); err != nil {
			t.Fatal(err)
		}
	}
	if got := values(b, 2); !equal(got, []int{3, 4}) && !equal(got, []int{1, 2}) {
		t.Errorf("%v", got)
	}
	if s := u.stats(); s.Resets != 1 {
		t.Errorf("%+v", s)
	}
}

// Another sender on the same address is not mixed in, and taken when the first is gone.
func TestTwoSendersAtOnce(t *testing.T) {
	t.Parallel()
	u := unpacker{flow: mono, buffer: NewBuffer(1, 48)}
	mine, other := packets(mono, 1, 1, 0), packets(mono, 1100, 1, 99)
	if err := u.take(mine[0]); err != nil {
		t.Fatal(err)
	}
	taken := -1
	for i, p := range other {
		p[11] = 8 // its SSRC
		if u.take(p) == nil && taken < 0 {
			taken = i
		}
	}
	if taken != 999 {
		t.Errorf("taken after %d packets", taken)
	}
}

func TestPacketsOfAnotherForm(t *testing.T) {
	t.Parallel()
	u := unpacker{flow: mono, buffer: NewBuffer(1, 48)}
	good := packets(mono, 1, 1, 0)[0]
	other := append([]byte{}, good...)
	other[1] = 98
	for name, p := range map[string][]byte{"nothing": nil, "half a sample": good[:len(good)-1], "no sound": good[:12], "another payload type": other} {
		if u.take(p) == nil {
			t.Error(name)
		}
	}
	if s := u.stats(); s.Refused != 4 || s.Packets != 0 {
		t.Errorf("%+v", s)
	}
}

// A pause of the sender's, after which its time has gone on, costs no delay.
func TestAPause(t *testing.T) {
	t.Parallel()
	b := NewBuffer(1, 2*48)
	for i := range int64(4) {
		b.Write(i*48, sine(i*48, 48))
	}
	block := make([]float32, 48)
	for range 500 {
		b.Read(block)
	}
	at := int64(502 * 48)
	for i := range int64(3) {
		b.Write(at+i*48, sine(at+i*48, 48))
	}
	b.Read(block)
	b.Read(block)
	if !b.Read(block) {
		t.Error("silence where there was sound")
	}
	if s := b.Stats(); s.Resets != 0 || s.Late != 0 {
		t.Errorf("%+v", s)
	}
}

// After a gap in what has no place in time, the delay is there again.
func TestAGapInWhatIsAppended(t *testing.T) {
	t.Parallel()
	b := NewBuffer(1, 4*48)
	block := make([]float32, 48)
	for round := range 3 {
		for range 3 {
			b.Append(sine(5, 48))
			if b.Read(block) {
				t.Fatalf("round %d: played before the delay is there", round)
			}
		}
		b.Append(sine(5, 48))
		for range 4 {
			if !b.Read(block) {
				t.Fatalf("round %d: silence where there was sound", round)
			}
		}
		if b.Read(block) {
			t.Fatalf("round %d: sound where there is none", round)
		}
	}
	if s := b.Stats(); s.Late != 0 || s.Resets != 0 {
		t.Errorf("%+v", s)
	}
}

func TestSamples(t *testing.T) {
	t.Parallel()
	for _, size := range []int{2, 3} {
		in := []float32{0, 0.5, -0.5, 1, -1, 7, -7, float32(math.NaN())}
		got := decode(nil, encode(nil, in, size), size)
		for i, want := range []float32{0, 0.5, -0.5, 1, -1, 1, -1, 0} {
			if math.Abs(float64(got[i]-want)) > 1.0/(1<<15) {
				t.Errorf("%d bytes: %g becomes %g", size, in[i], got[i])
			}
		}
	}
}

func TestInterfaces(t *testing.T) {
	t.Parallel()
	found, err := Interfaces(" lo ,")
	if err != nil || len(found) != 1 || found[0].Addr.String() != "127.0.0.1" {
		t.Errorf("%v, %v", found, err)
	}
	if _, err := Interfaces("lo,nowhere0"); err == nil {
		t.Error("an interface that is not there")
	}
	n := Network{Interfaces: found, Allow: []netip.Prefix{netip.MustParsePrefix("239.69.0.0/16")}}
	if !n.Usable() || !n.Allows(netip.MustParseAddr("239.69.1.1")) || n.Allows(netip.MustParseAddr("239.70.1.1")) || (Network{Allow: n.Allow}).Allows(netip.MustParseAddr("239.69.1.1")) {
		t.Error("what is allowed")
	}
}

// When one of several groups cannot be listened to, the sockets of the others are closed.
func TestListeningFailsWhole(t *testing.T) {
	t.Parallel()
	lo, err := Interfaces("lo")
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.ListenPacket("udp4", ":0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.LocalAddr().(*net.UDPAddr)
	_ = free.Close()
	groups := []netip.Addr{netip.MustParseAddr("239.255.77.1"), netip.MustParseAddr("192.0.2.77")} // the second is none of this machine
	if err := (Network{Interfaces: lo}).hearAll(t.Context(), groups, address.Port, func(Announcement) {}); err == nil {
		t.Error("an address of another machine is listened to")
	}
	again, err := net.ListenPacket("udp4", address.String())
	if err != nil {
		t.Fatalf("a socket is left: %v", err)
	}
	_ = again.Close()
}

func FuzzParseSDP(f *testing.F) {
	f.Add(dante)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseSDP(text)
		if err == nil && (got.Channels < 1 || got.Channels > MaxChannels || got.Port < 1024 || !got.Address.Is4() || got.frames() < 1 || len(got.Name) > maxName) {
			t.Fatalf("%+v", got)
		}
		growth.Linear(t, len(text), 64, 16<<10, func() { _, _ = ParseSDP(text) })
	})
}

func FuzzParseSAP(f *testing.F) {
	f.Add(Announce(netip.MustParseAddr("192.0.2.9"), dante, false))
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := ParseSAP(b); err == nil && len(a.SDP) > MaxSDP {
			t.Fatalf("%d bytes", len(a.SDP))
		}
		growth.Linear(t, len(b), 2, 1<<10, func() { _, _ = ParseSAP(b) })
	})
}

// Whatever comes, and in which order: the buffer stays within its second.
func FuzzPackets(f *testing.F) {
	f.Add(packets(mono, 1, 1, 0)[0], uint64(1))
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		u := unpacker{flow: mono, buffer: NewBuffer(1, 480)}
		r := rand.New(rand.NewPCG(seed, 1))
		block := make([]float32, 48)
		for range 20 {
			_ = u.take(b)
			if len(b) > 12 {
				b[2+r.IntN(6)] ^= byte(r.Uint32())
			}
			u.buffer.Read(block)
		}
		if held := u.buffer.head - u.buffer.read; held > Rate || len(u.buffer.ring) != Rate {
			t.Fatalf("%d frames are held", held)
		}
		growth.Linear(t, len(b), 16, 4<<10, func() { _ = u.take(b) })
	})
}
