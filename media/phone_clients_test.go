//go:build clients

package media_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// sippScenario has SIPp call a line, answer the challenge, and hang up. It is SIPp's own
// scenario of a caller, with a password.
func sippScenario(line answer) string {
	request := func(method, more string, n int) string {
		tag := "[peer_tag_param]"
		if method == "INVITE" {
			tag = ""
		}
		return "<![CDATA[\n" + method + " sip:[service]@[remote_ip]:[remote_port] SIP/2.0\nVia: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]\n" +
			"From: <sip:sipp@[local_ip]:[local_port]>;tag=[pid]-[call_number]\nTo: <sip:[service]@[remote_ip]:[remote_port]>" + tag + "\nCall-ID: [call_id]\n" +
			fmt.Sprintf("CSeq: %d %s\n", n, method) + "Contact: <sip:sipp@[local_ip]:[local_port];transport=[transport]>\nMax-Forwards: 70\n" + more + "]]>"
	}
	offer := "Content-Type: application/sdp\nContent-Length: [len]\n\nv=0\no=- 1 1 IN IP4 [local_ip]\ns=-\nc=IN IP4 [media_ip]\nt=0 0\nm=audio [media_port] RTP/AVP 0\n"
	auth := "[authentication username=" + line.text("username") + " password=" + line.text("password") + "]\n"
	nothing := "Content-Length: 0\n"
	return `<?xml version="1.0" encoding="ISO-8859-1" ?><scenario name="caller">
		<send retrans="500">` + request("INVITE", offer, 1) + `</send>
		<recv response="401" auth="true"/>
		<send>` + strings.Replace(request("ACK", nothing, 1), "[branch]", "[branch-2]", 1) + `</send>
		<send retrans="500">` + request("INVITE", auth+offer, 2) + `</send>
		<recv response="100" optional="true"/><recv response="180" optional="true"/>
		<recv response="200"/>
		<send>` + request("ACK", nothing, 2) + `</send>
		<pause/>
		<send retrans="500">` + request("BYE", nothing, 3) + `</send>
		<recv response="200"/>
	</scenario>`
}

// SIPp, whose answers to challenges name our host alone, makes ten calls by each
// transport, one after the other.
func TestSIPp(t *testing.T) {
	binary, err := exec.LookPath("sipp")
	if err != nil {
		t.Fatal("there is no SIPp: apt-get install --no-install-recommends sip-tester")
	}
	x := newExchange(t)
	for _, transport := range []string{"u1", "t1"} {
		t.Run(transport, func(t *testing.T) {
			x := x.within(t)
			_, line := x.line(object{})
			scenario := filepath.Join(t.TempDir(), "caller.xml")
			if err := os.WriteFile(scenario, []byte(sippScenario(line)), 0o600); err != nil {
				t.Fatal(err)
			}
			_, port, err := net.SplitHostPort(addrs(t, 1)[0])
			if err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(binary, "-sf", scenario, "-s", line.text("id"), "-t", transport, "-i", "127.0.0.1", "-p", port,
				"-m", "10", "-l", "1", "-r", "1", "-rp", "1500", "-d", "300", "-timeout", "60", "-timeout_error", x.addr).CombinedOutput()
			if err != nil {
				t.Errorf("%v: %s", err, out[max(0, len(out)-3000):])
			}
			await(t, func() bool {
				return x.do("GET", "/v1/phone/calls?state=completed&line_id="+line.text("id"), nil).want(200).get("pagination.total") == 10.0
			})
		})
	}
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
