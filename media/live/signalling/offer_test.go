package signalling

import (
	"bytes"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

const head = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n"

func TestWhichOffersPlayersUnderstand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		offer string
		want  bool
	}{
		"pictures and sound":            {head + "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=rtpmap:96 H264/90000\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=rtpmap:111 opus/48000/2\r\n", true},
		"one codec of several":          {head + "m=video 9 UDP/TLS/RTP/SAVPF 34 97\r\na=rtpmap:34 H263/90000\r\na=rtpmap:97 VP8/90000\r\n", true},
		"pictures of another time":      {head + "m=video 9 UDP/TLS/RTP/SAVPF 34\r\na=rtpmap:34 H263/90000\r\n", false},
		"sound of a telephone":          {head + "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=rtpmap:96 H264/90000\r\nm=audio 9 UDP/TLS/RTP/SAVPF 8\r\na=rtpmap:8 PCMA/8000\r\n", false},
		"and pictures after it":         {head + "m=audio 9 UDP/TLS/RTP/SAVPF 8\r\na=rtpmap:8 PCMA/8000\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\na=rtpmap:96 H264/90000\r\n", false},
		"data alone":                    {head + "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n", true},
		"no offer, which others refuse": {"hello", true},
		"nothing":                       {"", true},
	} {
		if got := Understood([]byte(c.offer)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestWhatAnOfferCosts(t *testing.T) {
	for name, line := range map[string]string{"parts": "m=\n", "kinds": "m=video\n", "codecs": "a=rtpmap:\n", "lines": "\n", "words": " ", "bytes": "\xff", "long": "m=video 9 "} {
		for _, n := range []int{64 << 10, 256 << 10} {
			offer := bytes.Repeat([]byte(line), n/len(line))
			growth.Linear(t, n, 4, 4<<10, func() { Understood(offer) })
			if t.Failed() {
				t.Fatal(name, n)
			}
		}
	}
}

func FuzzUnderstood(f *testing.F) {
	f.Add([]byte(head + "m=video 9 X 96\r\na=rtpmap:96 H264/90000\r\n"))
	f.Add([]byte("m=\na=rtpmap:"))
	f.Fuzz(func(t *testing.T, offer []byte) {
		growth.Linear(t, len(offer), 4, 4<<10, func() { Understood(offer) })
		// A part that nobody understands makes any offer bad.
		if bad := append([]byte("m=audio 9 X 8\na=rtpmap:8 PCMA/8000\nm=audio 9 X 8\n"), offer...); Understood(bad) {
			t.Errorf("%q is understood", bad)
		}
	})
}
