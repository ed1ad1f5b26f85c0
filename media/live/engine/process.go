package engine

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"text/template"
	"time"

	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/platform/http/httpapi"
)

// Config says which engine to run, and where it listens.
type Config struct {
	Binary string // path of mediamtx; required
	Dir    string // for its configuration and what it records; required
	RTMP   string // address to listen on, such as 127.0.0.1:1935; required, as the following
	SRT    string // UDP
	HLS    string // loopback: viewers come through our proxy
	WebRTC string
	Media  string // WebRTC media, UDP
	API    string // loopback
	// Host is where publishers and viewers reach the engine, a name or an address, if that is
	// none of this machine's. Empty: it is.
	Host string
	// RTSP is where our own parts publish and read, on loopback. Empty: nowhere.
	RTSP string
	// Again is the pause before an engine that has ended is started again. 0: one
	// second.
	Again time.Duration
	// Parts is how long the parts are in which segments can be had while they grow. 0: there
	// are none.
	Parts time.Duration
	// Own say whether a part of ours asks; see Auth.
	Own []func(Own) bool
	// Memory is what the engine's garbage collector keeps it below, in bytes, if it can. 0: it
	// takes what it likes.
	Memory int64
	// Output takes what the engine says. Nil: the standard output.
	Output io.Writer
}

// interval is the time between two looks at the engine.
const interval = time.Second

// configuration is what the engine is told. Protocols that the product does not
// offer are off.
var configuration = template.Must(template.New("mediamtx.yml").Parse(`logLevel: warn
authMethod: http
authHTTPAddress: http://engine:{{.Secret}}@{{.Auth}}/
authHTTPExclude: [{action: api}]
api: yes
apiAddress: {{.API}}
metrics: no
pprof: no
playback: no
rtsp: {{if .RTSP}}yes
rtspAddress: {{.RTSP}}
rtspTransports: [tcp]{{else}}no{{end}}
rtmp: yes
rtmpAddress: {{.RTMP}}
hls: yes
hlsAddress: {{.HLS}}
hlsVariant: {{if .Parts}}lowLatency
hlsPartDuration: {{.Parts}}{{else}}fmp4{{end}}
hlsAlwaysRemux: yes
webrtc: yes
webrtcAddress: {{.WebRTC}}
webrtcLocalUDPAddress: {{.Media}}
{{if .Host}}webrtcAdditionalHosts: ["{{.Host}}"]
{{end}}srt: yes
srtAddress: {{.SRT}}
pathDefaults:
  record: yes
  recordPath: {{.Records}}
  recordFormat: fmp4
  recordSegmentDuration: 24h
  recordDeleteAfter: 48h
  overridePublisher: no
paths:
  "~^live/play_[0-9a-z]+$": {}
`))

// Render returns the engine's configuration. auth is the address that answers
// its questions, secret the password there, which only the engine knows.
func Render(c Config, auth, secret string) ([]byte, error) {
	var out bytes.Buffer
	parts := ""
	if c.Parts > 0 {
		parts = c.Parts.String()
	}
	err := configuration.Execute(&out, map[string]string{"Auth": auth, "Secret": secret, "API": c.API, "RTSP": c.RTSP, "RTMP": c.RTMP, "SRT": c.SRT,
		"HLS": c.HLS, "WebRTC": c.WebRTC, "Media": c.Media, "Host": c.Host, "Records": filepath.Join(c.Dir, "%path", recordName), "Parts": parts})
	return out.Bytes(), err
}

// Run runs the engine and its watcher until ctx ends, and starts the engine again
// whenever it ends by itself. It fails when it cannot listen or write to c.Dir.
// API, Dir and Log of w are set here; its other fields are required.
func Run(ctx context.Context, c Config, w *Watcher, a httpapi.Adapter) error {
	if c.Again == 0 {
		c.Again = time.Second
	}
	if c.Output == nil {
		c.Output = os.Stdout
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the media engine: %w", err)
	}
	secret := ident.NewSecret("auth").Text
	file, err := write(c, listener.Addr().String(), secret)
	if err != nil {
		listener.Close()
		return err
	}
	server := &http.Server{Handler: Auth(w.Streams, w.Reader, a, secret, c.Own...), ReadTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close below
	defer server.Close()

	w.API = API{Base: "http://" + c.API, Client: &http.Client{Timeout: 5 * time.Second}}
	w.Dir = c.Dir
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	go w.Run(ctx, ticker.C)
	return supervise(ctx, c, file, w)
}

// write stores the configuration, which holds a secret.
func write(c Config, auth, secret string) (string, error) {
	text, err := Render(c, auth, secret)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return "", fmt.Errorf("make the media engine's folder: %w", err)
	}
	file := filepath.Join(c.Dir, "mediamtx.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return "", fmt.Errorf("configure the media engine: %w", err)
	}
	return file, nil
}

// supervise runs the engine, again and again, until ctx ends. The engine gets
// SIGTERM then and five seconds; if this process is killed, the kernel kills
// the engine.
func supervise(ctx context.Context, c Config, file string, w *Watcher) error {
	// The kernel ties Pdeathsig to the thread that forks, not to the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for ctx.Err() == nil {
		cmd := exec.CommandContext(ctx, c.Binary, file)
		cmd.Env = []string{"TZ=UTC"} // the times in the names of recordings
		if c.Memory > 0 {
			cmd.Env = append(cmd.Env, "GOMEMLIMIT="+strconv.FormatInt(c.Memory, 10))
		}
		cmd.Stdout, cmd.Stderr = c.Output, c.Output
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = 5 * time.Second
		err := cmd.Run()
		if ctx.Err() != nil {
			break
		}
		w.Log.WarnContext(ctx, "media engine ended; starting it again", "cause", err)
		select {
		case <-ctx.Done():
		case <-time.After(c.Again):
		}
	}
	return nil
}
