package media_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
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
	"sluice.dev/sluice/media/live/transports"
	"sluice.dev/sluice/media/plans"
)

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
	lo, err := aes67.Interfaces("lo")
	if err != nil {
		t.Fatal(err)
	}
	e := engineAt(t, addrs(t, 7))
	a := &air{rtmp: "rtmp://" + e.RTMP, tool: ffmpegtest.Tool(t).Binary, dir: e.Dir}
	a.bundle = setup(t, append([]func(*media.Config){withFFmpeg(t), func(c *media.Config) {
		c.Now = time.Now
		c.Plans = plans.Table{"": {ConcurrentStreams: 2, BitrateKbps: 6000, FileBytes: 1 << 20, StorageBytes: 10 << 20}}
		c.Endpoints.Available = true
		c.EngineHLS, c.EngineWebRTC = "http://"+e.HLS+"/live", "http://"+e.WebRTC+"/live"
		c.Transports = transports.Settings{Bridges: bridges,
			Network: aes67.Network{Interfaces: lo, Allow: []netip.Prefix{netip.MustParsePrefix("239.69.0.0/16"), netip.MustParsePrefix("127.0.0.0/8")}}}
	}}, more...)...)
	a.viewer = httptest.NewServer(a.handler)
	t.Cleanup(a.viewer.Close)
	a.runEngine(e, media.Beside{})
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
	out, err := sound(a.t, a.tool, 48000, channels, append(args, "-t", seconds)...)
	if err != nil && len(out[0]) == 0 {
		a.t.Fatal(err)
	}
	return out
}

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
	if l, r := share(sound[0], 48000, 440), share(sound[1], 48000, 1000); l < most || r < most {
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
	if l, r := share(sound[0], 48000, 1000), share(sound[1], 48000, 440); l < most || r < most {
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
