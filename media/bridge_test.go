package media_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sluice.dev/sluice/media/files/ffmpeg/ffmpegtest"
	"sluice.dev/sluice/platform/process/child/childtest"
)

// standIn is a bridge as docs/broadcast.md has it: it knows two cameras, of which one is
// switched off, makes a test card the picture of whoever asks for a camera, and
// measures what it is given to send. It writes what it was told to a file.
const standIn = `#!/bin/sh
echo "$SLUICE_BRIDGE_MODE $SLUICE_BRIDGE_TRANSPORT $SLUICE_BRIDGE_SOURCE" >> DIR/told
env >> DIR/env
url="rtsp://$SLUICE_BRIDGE_USER:$SLUICE_BRIDGE_PASSWORD@${SLUICE_BRIDGE_URL#rtsp://}"
case $SLUICE_BRIDGE_MODE in
discover)
  echo 'no line of JSON'
  echo '{"source": {"name": "STUDIO (Camera 1)", "address": "192.0.2.7:5961"}}'
  echo '{"source": {"name": "STUDIO (Camera 2)"}}'
  echo '{"gone": "STUDIO (Camera 2)"}'
  exec sleep 1000;;
in)
  if [ ! -e DIR/crashed ]; then touch DIR/crashed; echo '{"state": "failed", "message": "no licence"}'; exit 1; fi
  echo '{"state": "running"}'
  exec FFMPEG -nostdin -loglevel error -re -f lavfi -i testsrc2=size=320x180:rate=15 -f lavfi -i sine=frequency=1000 \
    -c:v libx264 -preset ultrafast -tune zerolatency -pix_fmt yuv420p -g 15 -c:a libopus -f rtsp -rtsp_transport tcp "$url";;
out)
  until FFMPEG -nostdin -loglevel quiet -y -rtsp_transport tcp -i "$url" -t 2 -vn -ar 48000 -ac 1 -f f32le DIR/sent; do sleep 1; done
  echo '{"state": "running", "message": "two seconds were sent"}'
  exec sleep 1000;;
esac
`

func bridge(t *testing.T) (dir, program string) {
	t.Helper()
	dir = t.TempDir()
	program = filepath.Join(dir, "bridge")
	childtest.Program(t, program, strings.NewReplacer("DIR", dir, "FFMPEG", ffmpegtest.Tool(t).Binary).Replace(standIn))
	return dir, program
}

// A program of the operator's brings NDI: it finds sources, makes one the picture of a
// stream, is started again when it ends, and sends a stream on.
func TestABridgeBringsNDI(t *testing.T) {
	dir, program := bridge(t)
	t.Setenv("SLUICE_SECRETS_KEY", "a secret of ours")
	a := onAir(t, map[string]string{"ndi": program})
	about := a.do("GET", "/v1/ndi", nil).want(200)
	if about.text("engine") != "external" || about.get("pictures") != true {
		t.Errorf("%s", about.raw)
	}
	var sources answer
	await(t, func() bool {
		sources = a.do("GET", "/v1/ndi/sources", nil).want(200)
		return strings.Contains(string(sources.raw), "Camera")
	})
	if sources.text("data.0.name") != "STUDIO (Camera 1)" || sources.text("data.0.address") != "192.0.2.7:5961" || strings.Contains(string(sources.raw), "Camera 2") {
		t.Errorf("%s", sources.raw)
	}
	show := a.do("POST", "/v1/streams", object{"title": "Show"}).want(201)
	in := a.do("POST", "/v1/ndi/inputs", object{"stream_id": show.text("id"), "source": sources.text("data.0.id")}).want(201)
	out := a.do("POST", "/v1/ndi/outputs", object{"stream_id": show.text("id")}).want(201)
	failed := a.state("/v1/ndi/inputs", in.text("id"), "failed")
	if failed.text("message") != "no licence" && !strings.Contains(failed.text("message"), "the bridge ended") {
		t.Errorf("%s", failed.raw)
	}
	a.state("/v1/ndi/inputs", in.text("id"), "running")
	await(t, func() bool {
		return a.do("GET", "/v1/streams/"+show.text("id"), nil).want(200).text("status") == "live"
	})
	if sent := a.state("/v1/ndi/outputs", out.text("id"), "running"); sent.text("message") != "two seconds were sent" || sent.text("name") != "Show" {
		t.Errorf("%s", sent.raw)
	}
	sound := a.heard("2", 1, "-f", "f32le", "-ar", "48000", "-ac", "1", "-i", filepath.Join(dir, "sent"))
	if s := share(sound[0], 48000, 1000); s < most {
		t.Errorf("%.3f of what is sent is 1000 Hz", s)
	}
	told, err := os.ReadFile(filepath.Join(dir, "told"))
	if err != nil || !strings.Contains(string(told), "in ndi STUDIO (Camera 1)\n") || !strings.Contains(string(told), "out ndi Show\n") {
		t.Errorf("%s, %v", told, err)
	}
	env, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil || strings.Contains(string(env), "a secret of ours") {
		t.Errorf("the bridge was given our secrets, or none: %v", err)
	}
	a.do("DELETE", "/v1/ndi/inputs/"+in.text("id"), nil).want(204)
	await(t, func() bool {
		return a.do("GET", "/v1/streams/"+show.text("id"), nil).want(200).text("status") == "ended"
	})
}

func portOf(address string) int {
	_, port, _ := strings.Cut(address, ":")
	n, _ := strconv.Atoi(port)
	return n
}

// By OMT the sound of one stream becomes that of another: our sender and our receiver.
func TestSoundGoesFromStreamToStreamByOMT(t *testing.T) {
	t.Parallel()
	a := onAir(t, nil)
	show := a.do("POST", "/v1/streams", object{"title": "Show"}).want(201)
	out := a.do("POST", "/v1/omt/outputs", object{"stream_id": show.text("id"), "port": portOf(addrs(t, 1)[0])}).want(201)
	args := append([]string{"-nostdin", "-hide_banner", "-loglevel", "error"}, tones(1000, 440)...)
	start(t, a.tool, append(args, "-c:a", "aac", "-b:a", "192k", "-f", "flv", a.rtmp+"/live/"+show.text("ingest.rtmp.stream_key"))...)
	sent := a.state("/v1/omt/outputs", out.text("id"), "running")
	if !strings.HasPrefix(sent.text("address"), "127.0.0.1:") || sent.text("engine") != "built_in" {
		t.Errorf("%s", sent.raw)
	}
	second := a.do("POST", "/v1/streams", object{"title": "Second"}).want(201)
	in := a.do("POST", "/v1/omt/inputs", object{"stream_id": second.text("id"), "source": sent.text("address"), "delay_ms": 100}).want(201)
	a.state("/v1/omt/inputs", in.text("id"), "running")
	path := "/v1/playback/" + second.text("playback_id") + "/index.m3u8"
	await(t, func() bool { return a.fetch(path).status == 200 })
	sound := a.heard("3", 2, "-i", a.viewer.URL+path)
	if l, r := share(sound[0], 48000, 1000), share(sound[1], 48000, 440); l < most || r < most {
		t.Errorf("left has %.3f of 1000 Hz, right %.3f of 440 Hz", l, r)
	}
}
