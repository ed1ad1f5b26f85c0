package audio_test

import (
	"math"
	"net"
	"os/exec"
	"strconv"
	"testing"

	"github.com/pion/rtp"
	"sluice.dev/sluice/media/files/ffmpeg/ffmpegtest"
	"sluice.dev/sluice/media/phone/audio"
	"sluice.dev/sluice/media/phone/sdp"
)

// share is how much of the power of samples is a tone of hz (Goertzel).
func share(samples []int16, hz, rate float64) float64 {
	w := 2 * math.Cos(2*math.Pi*hz/rate)
	var a, b, power float64
	for _, s := range samples {
		v := float64(s)
		a, b = v+w*a-b, a
		power += v * v
	}
	if power == 0 {
		return 0
	}
	return 2 * (a*a + b*b - w*a*b) / (float64(len(samples)) * power)
}

// What a public sender of RTP encodes is what we decode, in each codec and mode.
func TestATonePassesEachCodec(t *testing.T) {
	t.Parallel()
	ffmpeg := ffmpegtest.Tool(t).Binary
	cases := map[string]struct {
		codec sdp.Codec
		args  []string
	}{
		"pcmu":            {sdp.Codec{Name: sdp.PCMU, Rate: 8000}, []string{"-c:a", "pcm_mulaw", "-ar", "8000"}},
		"pcma":            {sdp.Codec{Name: sdp.PCMA, Rate: 8000}, []string{"-c:a", "pcm_alaw", "-ar", "8000"}},
		"opus, music":     {sdp.Codec{Name: sdp.Opus, Rate: 48000}, []string{"-c:a", "libopus", "-application", "audio", "-b:a", "64k"}},
		"opus, low delay": {sdp.Codec{Name: sdp.Opus, Rate: 48000}, []string{"-c:a", "libopus", "-application", "lowdelay"}},
		"opus, speech":    {sdp.Codec{Name: sdp.Opus, Rate: 48000}, []string{"-c:a", "libopus", "-application", "voip", "-b:a", "12k"}},
		"opus, 24 kbit/s": {sdp.Codec{Name: sdp.Opus, Rate: 48000}, []string{"-c:a", "libopus", "-application", "voip", "-b:a", "24k"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
			if err != nil {
				t.Fatal(err)
			}
			defer socket.Close()
			if err := socket.SetReadBuffer(1 << 20); err != nil {
				t.Fatal(err)
			}
			port := strconv.Itoa(socket.LocalAddr().(*net.UDPAddr).Port)
			args := append([]string{"-nostdin", "-loglevel", "error", "-re", "-f", "lavfi", "-i", "sine=frequency=1000:duration=60"}, c.args...)
			cmd := exec.Command(ffmpeg, append(args, "-ac", "1", "-f", "rtp", "rtp://127.0.0.1:"+port+"?pkt_size=600")...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}()
			d, err := audio.NewDecoder(c.codec)
			if err != nil {
				t.Fatal(err)
			}
			var heard []int16
			room := make([]byte, 1500)
			for len(heard) < 2*d.Rate {
				n, err := socket.Read(room)
				if err != nil {
					t.Fatal(err)
				}
				var p rtp.Packet
				if err := p.Unmarshal(room[:n]); err != nil {
					t.Fatal(err)
				}
				samples, err := d.Decode(p.Payload)
				if err != nil {
					t.Fatal(err)
				}
				heard = append(heard, samples...)
			}
			if got := share(heard[d.Rate:2*d.Rate], 1000, float64(d.Rate)); got < 0.7 {
				t.Errorf("a tone is %.2f of what is heard", got)
			}
		})
	}
}
