package media

import "testing"

func TestSurfacesFollowTheEngines(t *testing.T) {
	t.Parallel()
	none, engine, tool := Config{}, Config{EngineHLS: "http://e", EngineWebRTC: "http://e"}, Config{FFmpeg: "/bin/ffmpeg"}
	engine.Endpoints.Available = true
	for name, want := range map[string][3]string{
		"rtmp": {"needs_engine", "available", "needs_engine"}, "srt": {"needs_engine", "available", "needs_engine"},
		"webrtc": {"needs_engine", "available", "needs_engine"}, "hls": {"needs_engine", "available", "needs_engine"},
		"transcode": {"needs_engine", "needs_engine", "available"}, "mux": {"needs_engine", "needs_engine", "available"},
		"render": {"needs_engine", "needs_engine", "available"}, "editor": {"needs_engine", "needs_engine", "available"}, "voice": {"needs_engine", "needs_engine", "needs_engine"},
	} {
		if got := [3]string{none.surfaces(t.Context(), nil)[name], engine.surfaces(t.Context(), nil)[name], tool.surfaces(t.Context(), nil)[name]}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
