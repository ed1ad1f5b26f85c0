package sdp_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"sluice.dev/sluice/media/phone/sdp"
	"sluice.dev/sluice/platform/limits/growth"
)

// offer is a description with a line of media and its attributes.
func offer(lines ...string) string {
	return "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n" + strings.Join(lines, "\r\n") + "\r\n"
}

func TestTheFirstCodecThatWeHaveIsTaken(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		text  string
		codec sdp.Codec
		keys  uint8
		err   error
	}{
		"G.711 by number":        {offer("m=audio 4000 RTP/AVP 8 0"), sdp.Codec{Name: "pcma", Rate: 8000, Type: 8}, 0, nil},
		"Opus after another":     {offer("m=audio 4000 RTP/AVP 9 97 0 101", "a=rtpmap:97 OPUS/48000/2", "a=rtpmap:101 telephone-event/8000"), sdp.Codec{Name: "opus", Rate: 48000, Type: 97}, 101, nil},
		"keys of its clock":      {offer("m=audio 4000 RTP/AVP 97 101 102", "a=rtpmap:97 opus/48000/2", "a=rtpmap:101 telephone-event/8000", "a=rtpmap:102 telephone-event/48000"), sdp.Codec{Name: "opus", Rate: 48000, Type: 97}, 102, nil},
		"pictures are ignored":   {offer("m=video 5000 RTP/AVP 96", "m=audio 4000 RTP/AVP 0"), sdp.Codec{Name: "pcmu", Rate: 8000}, 0, nil},
		"none of ours":           {offer("m=audio 4000 RTP/AVP 9 18"), sdp.Codec{}, 0, sdp.ErrNoCodec},
		"encrypted alone":        {offer("m=audio 4000 RTP/SAVP 0"), sdp.Codec{}, 0, sdp.ErrNoCodec},
		"switched off":           {offer("m=audio 0 RTP/AVP 0"), sdp.Codec{}, 0, sdp.ErrNoCodec},
		"G.711 of another clock": {offer("m=audio 4000 RTP/AVP 97", "a=rtpmap:97 PCMU/16000"), sdp.Codec{}, 0, sdp.ErrNoCodec},
		"a name for an address":  {strings.Replace(offer("m=audio 4000 RTP/AVP 0"), "c=IN IP4 192.0.2.1", "c=IN IP4 a.example", 1), sdp.Codec{}, 0, sdp.ErrForm},
		"multicast":              {strings.Replace(offer("m=audio 4000 RTP/AVP 0"), "c=IN IP4 192.0.2.1", "c=IN IP4 239.0.0.1/127", 1), sdp.Codec{}, 0, sdp.ErrForm},
		"nothing":                {"", sdp.Codec{}, 0, sdp.ErrNoCodec},
		"too long":               {offer("m=audio 4000 RTP/AVP 0", strings.Repeat("a=x\r\n", sdp.MaxSize/5)), sdp.Codec{}, 0, sdp.ErrForm},
	}
	for name, c := range cases {
		got, err := sdp.Read([]byte(c.text))
		if !errors.Is(err, c.err) || err == nil && (got.Codec != c.codec || got.Keys != c.keys || got.Addr != netip.MustParseAddrPort("192.0.2.1:4000")) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestWhatWeSayReadsBack(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"198.51.100.7:20000", "[2001:db8::1]:20000"} {
		own := netip.MustParseAddrPort(text)
		said, err := sdp.Read(sdp.Offer(own))
		if err != nil || said.Addr != own || said.Codec.Name != sdp.Opus || said.Keys != 101 {
			t.Errorf("%+v, %v", said, err)
		}
		answer, err := sdp.Read(said.Answer(own))
		if err != nil || answer.Addr != said.Addr || answer.Codec != said.Codec || answer.Keys != said.Keys {
			t.Errorf("%+v, %v, want %+v", answer, err, said)
		}
	}
}

// An answer has as many media as its offer, and to a call that is held it says that it
// is (RFC 3264, 6).
func TestAnswers(t *testing.T) {
	t.Parallel()
	own := netip.MustParseAddrPort("198.51.100.7:20000")
	cases := map[string]struct {
		text, want string
		hears      bool
	}{
		"sound":                 {offer("m=audio 4000 RTP/AVP 0"), "m=audio 20000 RTP/AVP 0|a=sendrecv", true},
		"held":                  {offer("m=audio 4000 RTP/AVP 0", "a=sendonly"), "m=audio 20000 RTP/AVP 0|a=recvonly", false},
		"held both ways":        {offer("m=audio 4000 RTP/AVP 0", "a=inactive"), "m=audio 20000 RTP/AVP 0|a=inactive", false},
		"held as a whole":       {offer("a=sendonly", "m=audio 4000 RTP/AVP 0"), "m=audio 20000 RTP/AVP 0|a=recvonly", false},
		"its media has the say": {offer("a=inactive", "m=audio 4000 RTP/AVP 0", "a=sendrecv"), "m=audio 20000 RTP/AVP 0|a=sendrecv", true},
		"listening":             {offer("m=audio 4000 RTP/AVP 0", "a=recvonly"), "m=audio 20000 RTP/AVP 0|a=sendonly", true},
		"pictures around":       {offer("m=video 5000 RTP/AVP 96 97", "m=audio 4000 RTP/AVP 0", "m=video 5002 RTP/AVPF 98"), "m=video 0 RTP/AVP 96 97|m=audio 20000 RTP/AVP 0|a=sendrecv|m=video 0 RTP/AVPF 98", true},
	}
	for name, c := range cases {
		s, err := sdp.Read([]byte(c.text))
		if err != nil {
			t.Fatal(name, err)
		}
		var got []string
		for line := range strings.SplitSeq(string(s.Answer(own)), "\r\n") {
			if strings.HasPrefix(line, "m=") || strings.HasPrefix(line, "a=") && (strings.HasSuffix(line, "active") || strings.Contains(line, "send") || strings.Contains(line, "recv")) {
				got = append(got, line)
			}
		}
		if strings.Join(got, "|") != c.want || s.Hears() != c.hears {
			t.Errorf("%s: %s, hears %v", name, strings.Join(got, "|"), s.Hears())
		}
	}
	if _, err := sdp.Read([]byte(offer("m=audio 4000 RTP/AVP 0", strings.Repeat("m=video 1 RTP/AVP 96\r\n", 16)+"a=x"))); !errors.Is(err, sdp.ErrForm) {
		t.Errorf("seventeen media: %v", err)
	}
}

// Whatever is read is taken by a codec that we have, or refused, and our answer to it
// says the same.
func FuzzRead(f *testing.F) {
	f.Add(offer("m=audio 4000 RTP/AVP 97 0 101", "a=rtpmap:97 opus/48000/2", "a=rtpmap:101 telephone-event/8000"))
	f.Add(offer("m=audio 4000 RTP/AVP 8"))
	f.Fuzz(func(t *testing.T, text string) {
		growth.Linear(t, len(text), 128, 64<<10, func() { _, _ = sdp.Read([]byte(text)) })
		s, err := sdp.Read([]byte(text))
		if err != nil {
			return
		}
		again, err := sdp.Read(s.Answer(s.Addr))
		if err != nil || again.Codec != s.Codec || again.Keys != s.Keys {
			t.Fatalf("%+v answered by %+v: %v", s, again, err)
		}
	})
}
