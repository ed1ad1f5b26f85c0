//go:build clients

package media_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// baresip is a public softphone that calls a line with a codec, and plays a tone.
func baresip(t *testing.T, line answer, codec string, hz int) *exec.Cmd {
	t.Helper()
	binary, err := exec.LookPath("baresip")
	if err != nil {
		t.Fatal("there is no baresip: apt-get install --no-install-recommends baresip-core")
	}
	dir := t.TempDir()
	config := fmt.Sprintf("poll_method epoll\nsip_listen 127.0.0.1:0\nnet_interface 127.0.0.1\naudio_source ausine,%d\naudio_player aufile,%s\naudio_alert aufile,%s\n"+
		"module_path /usr/lib/baresip/modules\nmodule ausine.so\nmodule aufile.so\nmodule g711.so\nmodule opus.so\nmodule_tmp uuid.so\nmodule_tmp account.so\nmodule_app menu.so\n",
		hz, filepath.Join(dir, "heard.wav"), filepath.Join(dir, "alert.wav"))
	account := fmt.Sprintf("<%s>;auth_user=%s;auth_pass=%s;audio_codecs=%s;regint=0;answermode=manual\n", line.text("uri"), line.text("username"), line.text("password"), codec)
	for name, text := range map[string]string{"config": config, "accounts": account, "contacts": "", "uuid": "11111111-1111-4111-8111-111111111111"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return exec.Command(binary, "-s", "-f", dir, "-e", "/dial "+line.text("uri"))
}

// A public softphone calls lines, and its tone is in what viewers play.
func TestPhoneClients(t *testing.T) {
	x := newExchange(t)
	for _, c := range []struct {
		codec, seen string
		hz          int
	}{{"opus/48000/2", "opus", 800}} {
		t.Run(c.seen, func(t *testing.T) {
			x := x.within(t)
			stream, line := x.line(object{})
			p := baresip(t, line, c.codec, c.hz)
			log, err := os.Create(filepath.Join(t.TempDir(), "log"))
			if err != nil {
				t.Fatal(err)
			}
			p.Stdout, p.Stderr = log, log
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = p.Process.Kill()
				_ = p.Wait()
				if said, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
					t.Logf("%s", said)
				}
			})
			if call := x.lastCall(line, "in_progress"); call.text("codec") != c.seen {
				t.Errorf("%s", call.raw)
			}
			x.hears(stream, float64(c.hz))
		})
	}
}
