package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 4 << 20

// refusal is an answer that is not 2xx.
type refusal struct {
	status        int
	code, message string
}

// Error says what was answered.
func (r *refusal) Error() string {
	return fmt.Sprintf("the gateway answers %d %s: %s", r.status, r.code, r.message)
}

// call asks the gateway with body as JSON (nil: none) and decodes the answer into
// into, unless that is nil. An answer that is not 2xx is a *refusal.
func (t *tour) call(ctx context.Context, method, path string, body, into any) error {
	raw, err := t.ask(ctx, method, path, body)
	if err == nil && into != nil {
		err = json.Unmarshal(raw, into)
	}
	return err
}

// ask is call for an answer that may be something else than JSON.
func (t *tour) ask(ctx context.Context, method, path string, body any) ([]byte, error) {
	var payload io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		payload = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, t.Gateway+path, payload)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+t.Key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return t.do(req)
}

// do makes a request and reads the answer.
func (t *tour) do(req *http.Request) ([]byte, error) {
	res, err := t.HTTP.Do(req)
	if err != nil {
		return nil, fmt.Errorf("is the stack up? %w", err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil || res.StatusCode < 300 {
		return raw, err
	}
	var e struct {
		Error struct{ Code, Message string }
	}
	_ = json.Unmarshal(raw, &e) // an answer that is no envelope has no code
	return nil, &refusal{res.StatusCode, e.Error.Code, e.Error.Message}
}

// playlist waits until the stream can be watched and returns the number of lines
// of its playlist.
func (t *tour) playlist(ctx context.Context, address string, p *publisher) (lines int, err error) {
	err = until(ctx, patience, func() error {
		select {
		case <-p.gone:
			return fmt.Errorf("ffmpeg ended: %s", p.said.String())
		default:
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		raw, err := t.do(req)
		lines = bytes.Count(raw, []byte("\n"))
		return err
	})
	return lines, err
}

// publisher is an ffmpeg that sends.
type publisher struct {
	cmd  *exec.Cmd
	said bytes.Buffer // read when it has gone
	gone chan struct{}
}

// publish starts ffmpeg with a test card and a tone.
func (t *tour) publish() (*publisher, error) {
	args := "-f lavfi -i testsrc2=size=640x360:rate=25 -f lavfi -i sine=frequency=330:beep_factor=4 " + encoded + " -c:a aac -f flv"
	p, err := t.send(append(strings.Fields(args), t.stream.Ingest.RTMP.URL+"/"+t.stream.Ingest.RTMP.Key)...)
	if err == nil {
		t.say("3. A publisher   ffmpeg sends a test card with a tone by RTMP, from %s", time.Now().UTC().Format("15:04:05Z"))
	}
	return p, err
}

// encoded is how pictures are sent: as encoders for live video do, each second whole.
const encoded = "-c:v libx264 -preset ultrafast -tune zerolatency -pix_fmt yuv420p -g 25 -b:v 800k"

// errNoFFmpeg says what to do without.
var errNoFFmpeg = errors.New("there is no ffmpeg: install it, run `make tools`, or set SLUICE_FFMPEG")

// send starts an ffmpeg that sends in real time. The stream key is among its arguments, as
// with every encoder: who may list processes sees it.
func (t *tour) send(args ...string) (*publisher, error) {
	if t.FFmpeg == "" {
		return nil, errNoFFmpeg
	}
	p := &publisher{gone: make(chan struct{})}
	p.cmd = exec.Command(t.FFmpeg, append([]string{"-nostdin", "-hide_banner", "-loglevel", "error", "-re"}, args...)...)
	p.cmd.Stderr = &p.said
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		// The kernel ties Pdeathsig to the thread that forks, not to the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // it fails when it is closed from the other side, as it should
		}
		close(p.gone)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start ffmpeg: %w", err)
	}
	return p, nil
}

// stop ends ffmpeg and waits for it.
func (p *publisher) stop() {
	_ = p.cmd.Process.Kill()
	<-p.gone
}
