package media_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/files/ffmpeg/ffmpegtest"
	"sluice.dev/sluice/media/live/aes67"
	"sluice.dev/sluice/media/live/engine"
	"sluice.dev/sluice/media/live/transports"
	"sluice.dev/sluice/media/plans"
)

// patience is how long a test waits for programs that are slow on a busy machine.
const patience = 90 * time.Second

// freeAddrs returns n addresses of this machine that nobody listens on.
func freeAddrs(t *testing.T, n int) (out []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		out = append(out, l.Addr().String())
	}
	return out
}

// group is a group that no other test uses, and a port.
func group() (string, int) {
	return fmt.Sprintf("239.69.%d.%d", rand.IntN(256), 1+rand.IntN(254)), 20000 + 2*rand.IntN(10000)
}

// air is a product with a real media engine, on the loopback interface.
type air struct {
	*bundle
	rtmp   string
	dir    string // of the engine
	viewer *httptest.Server
	tool   string
}

// onAir starts one. bridges are programs, by transport.
func onAir(t *testing.T, bridges map[string]string, more ...func(*media.Config)) *air {
	t.Helper()
	binary := os.Getenv("SLUICE_MEDIA_ENGINE")
	if binary == "" {
		t.Fatal("there is no media engine: run `make test`, which builds one")
	}
	lo, err := aes67.Interfaces("lo")
	if err != nil {
		t.Fatal(err)
	}
	at := freeAddrs(t, 7)
	a := &air{rtmp: "rtmp://" + at[0], tool: ffmpegtest.Tool(t).Binary, dir: filepath.Join(t.TempDir(), "engine")}
	a.bundle = setup(t, append([]func(*media.Config){withFFmpeg(t), func(c *media.Config) {
		c.Now = time.Now
		c.Plans = plans.Table{"": {ConcurrentStreams: 2, BitrateKbps: 6000, FileBytes: 1 << 20, StorageBytes: 10 << 20}}
		c.Endpoints.Available = true
		c.EngineHLS, c.EngineWebRTC = "http://"+at[2]+"/live", "http://"+at[3]+"/live"
		c.Transports = transports.Settings{Bridges: bridges,
			Network: aes67.Network{Interfaces: lo, Allow: []netip.Prefix{netip.MustParsePrefix("239.69.0.0/16"), netip.MustParsePrefix("127.0.0.0/8")}}}
	}}, more...)...)
	a.viewer = httptest.NewServer(a.handler)
	t.Cleanup(a.viewer.Close)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- media.RunEngine(ctx, a.config, engine.Config{Binary: binary, Dir: a.dir, Output: io.Discard,
			RTMP: at[0], SRT: at[1], HLS: at[2], WebRTC: at[3], Media: at[4], API: at[5], RTSP: at[6]}, media.Beside{})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	await(t, func() bool {
		c, err := net.Dial("tcp", at[0])
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
	return a
}

// start runs a program until the end of the test, or until stop is called.
func start(t *testing.T, name string, args ...string) (stop func()) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		if said.Len() > 0 {
			t.Logf("%s: %s", filepath.Base(name), said.String())
		}
	})
	t.Cleanup(stop)
	return stop
}

// state waits until a link is in a state.
func (a *air) state(path, id, want string) (last answer) {
	a.t.Helper()
	await(a.t, func() bool {
		last = a.do("GET", path+"/"+id, nil).want(200)
		return last.text("state") == want
	})
	return last
}

// heard has ffmpeg listen, and returns its sound, one channel after the other.
func (a *air) heard(seconds string, channels int, args ...string) [][]float64 {
	a.t.Helper()
	args = append(append([]string{"-nostdin", "-hide_banner", "-loglevel", "error"}, args...), "-vn", "-t", seconds, "-ar", "48000", "-ac", fmt.Sprint(channels), "-f", "f32le", "-")
	ctx, cancel := context.WithTimeout(a.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, a.tool, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	raw, err := cmd.Output()
	if err != nil && len(raw) == 0 {
		a.t.Fatalf("%v: %s", err, said.String())
	}
	out := make([][]float64, channels)
	for i := 0; i+4 <= len(raw); i += 4 {
		c := i / 4 % channels
		out[c] = append(out[c], float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[i:]))))
	}
	return out
}

// shareOf is how much of a sound's power is at a frequency (Goertzel), from 0 to 1, on
// average over tenths of a second: clocks that differ shift its phase. The first half
// second is left out: decoders begin softly.
func shareOf(s []float64, hz float64) float64 {
	const window = 4800
	var sum float64
	var n int
	for at := 24000; at+window <= len(s); at += window {
		var power, re, im float64
		for i, v := range s[at : at+window] {
			power += v * v
			re += v * math.Cos(2*math.Pi*hz*float64(i)/48000)
			im += v * math.Sin(2*math.Pi*hz*float64(i)/48000)
		}
		if n++; power > 0 {
			sum += 2 * (re*re + im*im) / window / power
		}
	}
	return sum / float64(max(n, 1))
}

// most is a share that nothing but the tone itself has: of another it is next to 0. A
// machine that is busy with other tests lets some of it fall silent.
const most = 0.5

// tones are two of them, left and right, as ffmpeg makes them.
func tones(left, right int) []string {
	return []string{"-re", "-f", "lavfi", "-i", fmt.Sprintf("aevalsrc=exprs='0.4*sin(2*PI*%d*t)|0.4*sin(2*PI*%d*t)':sample_rate=48000", left, right)}
}

// flow is ffmpeg sending a flow of AES67, and its description.
func (a *air) flow(address string, port, left, right int) (stop func(), sdp string) {
	args := append([]string{"-nostdin", "-hide_banner", "-loglevel", "error"}, tones(left, right)...)
	args = append(args, "-c:a", "pcm_s24be", "-payload_type", "97", "-f", "rtp", fmt.Sprintf("rtp://%s:%d?localaddr=127.0.0.1&ttl=1&pkt_size=300", address, port))
	sdp = fmt.Sprintf("v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=Stage\r\nc=IN IP4 %s/1\r\nt=0 0\r\nm=audio %d RTP/AVP 97\r\na=rtpmap:97 L24/48000/2\r\na=ptime:1\r\n", address, port)
	return start(a.t, a.tool, args...), sdp
}

// A flow that ffmpeg sends by multicast is the sound of a stream: viewers of HLS hear its
// tones, each on its side; without packets the stream goes off air, and on again.
func TestAFlowOfAES67IsTheSoundOfAStream(t *testing.T) {
	t.Parallel()
	a := onAir(t, nil)
	show := a.do("POST", "/v1/streams", object{"title": "Show"}).want(201)
	address, port := group()
	stop, sdp := a.flow(address, port, 1000, 440)
	in := a.do("POST", "/v1/dante/inputs", object{"stream_id": show.text("id"), "sdp": sdp, "channels": []int{2, 1}}).want(201)
	id := in.text("id")
	if in.text("name") != "Stage" || in.text("engine") != "built_in" || in.text("format") != "L24" || in.text("address") != fmt.Sprintf("%s:%d", address, port) {
		t.Errorf("%s", in.raw)
	}
	a.state("/v1/dante/inputs", id, "running")
	playlist := a.viewer.URL + "/v1/playback/" + show.text("playback_id") + "/index.m3u8"
	await(t, func() bool { return a.fetch("/v1/playback/"+show.text("playback_id")+"/index.m3u8").status == 200 })
	sound := a.heard("3", 2, "-i", playlist)
	if l, r := shareOf(sound[0], 440), shareOf(sound[1], 1000); l < most || r < most {
		t.Errorf("left has %.3f of 440 Hz, right %.3f of 1000 Hz, in %d frames", l, r, len(sound[0]))
	}
	status := func() string { return a.do("GET", "/v1/streams/"+show.text("id"), nil).want(200).text("status") }
	await(t, func() bool { return status() == "live" })
	await(t, func() bool {
		got := a.do("GET", "/v1/dante/inputs/"+id, nil).want(200)
		packets, _ := got.get("stats.packets").(float64)
		lost, _ := got.get("stats.lost").(float64)
		return packets > 1000 && lost == 0
	})
	stop()
	a.state("/v1/dante/inputs", id, "waiting")
	await(t, func() bool { return status() == "ended" })
	a.flow(address, port, 1000, 440)
	a.state("/v1/dante/inputs", id, "running")
	await(t, func() bool { return status() == "live" })
	a.act(show.text("id"), "stop").want(200)
	a.state("/v1/dante/inputs", id, "stopped")
	a.act(show.text("id"), "start").want(200)
	a.state("/v1/dante/inputs", id, "running")
	a.do("DELETE", "/v1/dante/inputs/"+id, nil).want(204)
	await(t, func() bool { return status() == "ended" })
}

// A stream's sound goes out as a flow, which ffmpeg receives by the description that
// the API gives; it is announced, and with that a source of another stream.
func TestAStreamGoesOutAsAFlowOfAES67(t *testing.T) {
	t.Parallel()
	a := onAir(t, nil)
	show := a.do("POST", "/v1/streams", object{"title": "Show"}).want(201)
	out := a.do("POST", "/v1/dante/outputs", object{"stream_id": show.text("id"), "name": "Hall " + show.text("id")}).want(201)
	id := out.text("id")
	a.state("/v1/dante/outputs", id, "waiting")
	args := append([]string{"-nostdin", "-hide_banner", "-loglevel", "error"}, tones(1000, 440)...)
	start(t, a.tool, append(args, "-c:a", "aac", "-b:a", "192k", "-f", "flv", a.rtmp+"/live/"+show.text("ingest.rtmp.stream_key"))...)
	a.state("/v1/dante/outputs", id, "running")
	sdp := a.do("GET", "/v1/dante/outputs/"+id+"/sdp", nil).want(200)
	for _, line := range []string{"a=rtpmap:97 L24/48000/2", "a=ptime:1", "a=ts-refclk:local", "a=mediaclk:direct=0", "c=IN IP4 239.69."} {
		if !strings.Contains(string(sdp.raw), line) {
			t.Errorf("no %s in %s", line, sdp.raw)
		}
	}
	name := filepath.Join(t.TempDir(), "out.sdp")
	// ffmpeg takes a source-filter only together with a route to the group.
	text := strings.ReplaceAll(string(sdp.raw), "a=source-filter", "a=x-source-filter")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	sound := a.heard("3", 2, "-protocol_whitelist", "file,udp,rtp", "-localaddr", "127.0.0.1", "-buffer_size", "1000000", "-i", name)
	if l, r := shareOf(sound[0], 1000), shareOf(sound[1], 440); l < most || r < most {
		t.Errorf("left has %.3f of 1000 Hz, right %.3f of 440 Hz, in %d frames", l, r, len(sound[0]))
	}
	var source answer
	await(t, func() bool {
		source = a.do("GET", "/v1/dante/sources", nil).want(200)
		return strings.Contains(string(source.raw), "Hall "+show.text("id"))
	})
	second := a.do("POST", "/v1/streams", object{"title": "Second"}).want(201)
	in := a.do("POST", "/v1/dante/inputs", object{"stream_id": second.text("id"), "source": "Hall " + show.text("id")}).want(201)
	a.state("/v1/dante/inputs", in.text("id"), "running")
	a.do("DELETE", "/v1/dante/outputs/"+id, nil).want(204)
	await(t, func() bool {
		return !strings.Contains(string(a.do("GET", "/v1/dante/sources", nil).want(200).raw), "Hall "+show.text("id"))
	})
}
