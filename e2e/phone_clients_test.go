//go:build clients

package e2e

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// phoneLine is a line with what telephones need of it.
type phoneLine struct {
	ID, URI, Username, Password string
	StreamID                    string `json:"stream_id"`
}

// phoneCalls is a list of calls.
type phoneCalls struct {
	Data []struct{ State, Codec, Reason string }
}

// takeCalls makes a stream and a line for it.
func (s *stack) takeCalls(t testing.TB, key string) (show, phoneLine) {
	t.Helper()
	made := s.createShow(t, key, map[string]any{})
	r := call(t, http.MethodPost, s.url("/v1/phone/lines"), key, map[string]any{"stream_id": made.ID})
	wantStatus(t, r, http.StatusCreated)
	return made, into[phoneLine](t, r)
}

// calls reads the calls of a line.
func (s *stack) calls(t testing.TB, key string, l phoneLine) phoneCalls {
	t.Helper()
	r := call(t, http.MethodGet, s.url("/v1/phone/calls?line_id="+l.ID), key, nil)
	wantStatus(t, r, http.StatusOK)
	return into[phoneCalls](t, r)
}

// toneIn is how much of the power of what a stream plays is a tone of hz (Goertzel).
func (s *stack) toneIn(t testing.TB, of show, hz float64) (float64, error) {
	t.Helper()
	pcm, err := exec.Command(need(t, "SLUICE_FFMPEG"), "-nostdin", "-loglevel", "error", "-i", s.url("/v1/playback/"+of.PlaybackID+"/index.m3u8"),
		"-vn", "-t", "2", "-ar", "8000", "-ac", "1", "-f", "s16le", "-").Output()
	if err != nil || len(pcm) < 16000 {
		return 0, fmt.Errorf("%d bytes of sound: %w", len(pcm), errors.Join(err))
	}
	pcm = pcm[len(pcm)-16000:]
	w := 2 * math.Cos(2*math.Pi*hz/8000)
	var a, b, power float64
	for i := range 8000 {
		v := float64(int16(binary.LittleEndian.Uint16(pcm[2*i:])))
		a, b = v+w*a-b, a
		power += v * v
	}
	return 2 * (a*a + b*b - w*a*b) / (8000 * max(power, 1)), nil
}

// softphone is baresip that calls a line with a codec, and plays a tone.
func softphone(t testing.TB, l phoneLine, codec, transport string, hz int) *exec.Cmd {
	t.Helper()
	binary, err := exec.LookPath("baresip")
	if err != nil {
		t.Fatal("there is no baresip: apt-get install --no-install-recommends baresip-core")
	}
	modules, _ := filepath.Glob("/usr/lib/*/baresip/modules")
	modules = append(modules, "/usr/lib/baresip/modules")
	dir := t.TempDir()
	config := fmt.Sprintf("poll_method epoll\nsip_listen 127.0.0.1:0\nnet_interface lo\naudio_source ausine,%d\naudio_player aufile,%s\naudio_alert aufile,%s\n"+
		"module_path %s\nmodule ausine.so\nmodule aufile.so\nmodule g711.so\nmodule opus.so\nmodule_tmp uuid.so\nmodule_tmp account.so\nmodule_app menu.so\n",
		hz, filepath.Join(dir, "heard.wav"), filepath.Join(dir, "alert.wav"), modules[0])
	uri := l.URI + ";transport=" + transport
	account := fmt.Sprintf("<%s>;auth_user=%s;auth_pass=%s;audio_codecs=%s;regint=0;answermode=manual\n", uri, l.Username, l.Password, codec)
	for name, text := range map[string]string{"config": config, "accounts": account, "contacts": "", "uuid": "11111111-1111-4111-8111-111111111111"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return exec.Command(binary, "-f", dir, "-e", "/dial "+uri, "-t", "60")
}

// A public softphone calls lines by its codecs and transports, and its tone is in what
// viewers play.
func TestPhoneClients(t *testing.T) {
	s := studio(t)
	key := s.dev["SLUICE_API_KEY"]
	for _, c := range []struct {
		codec, transport, seen string
		hz                     int
	}{{"PCMU/8000/1", "udp", "pcmu", 500}, {"PCMA/8000/1", "tcp", "pcma", 600}, {"opus/48000/2", "udp", "opus", 800}} {
		t.Run(c.seen+" by "+c.transport, func(t *testing.T) {
			made, l := s.takeCalls(t, key)
			p := running(t, softphone(t, l, c.codec, c.transport, c.hz))
			defer p.Kill()
			eventually(t, "the tone", func() error {
				got, err := s.toneIn(t, made, float64(c.hz))
				if err == nil && got < 0.5 {
					err = fmt.Errorf("a tone is %.2f of the sound", got)
				}
				return err
			})
			if calls := s.calls(t, key, l); len(calls.Data) != 1 || calls.Data[0].State != "in_progress" || calls.Data[0].Codec != c.seen {
				t.Errorf("%+v", calls)
			}
		})
	}
}

// scenario is a caller of SIPp's: it answers the challenge, calls, and hangs up.
const scenario = `<?xml version="1.0"?><scenario name="caller">
<send retrans="500"><![CDATA[
INVITE sip:[service]@[remote_ip]:[remote_port] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From: <sip:sipp@[local_ip]:[local_port]>;tag=[call_number]
To: <sip:[service]@[remote_ip]>
Call-ID: [call_id]
CSeq: 1 INVITE
Contact: <sip:sipp@[local_ip]:[local_port]>
Max-Forwards: 70
Content-Type: application/sdp
Content-Length: [len]

v=0
o=- 1 1 IN IP4 [local_ip]
s=-
c=IN IP4 [media_ip]
t=0 0
m=audio [media_port] RTP/AVP 0
]]></send>
<recv response="401" auth="true"/>
<send><![CDATA[
ACK sip:[service]@[remote_ip]:[remote_port] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From: <sip:sipp@[local_ip]:[local_port]>;tag=[call_number]
To: <sip:[service]@[remote_ip]>[peer_tag_param]
Call-ID: [call_id]
CSeq: 1 ACK
Content-Length: 0

]]></send>
<send retrans="500"><![CDATA[
INVITE sip:[service]@[remote_ip]:[remote_port] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From: <sip:sipp@[local_ip]:[local_port]>;tag=[call_number]
To: <sip:[service]@[remote_ip]>
Call-ID: [call_id]
CSeq: 2 INVITE
Contact: <sip:sipp@[local_ip]:[local_port]>
[authentication username=USER password=PASSWORD]
Max-Forwards: 70
Content-Type: application/sdp
Content-Length: [len]

v=0
o=- 1 1 IN IP4 [local_ip]
s=-
c=IN IP4 [media_ip]
t=0 0
m=audio [media_port] RTP/AVP 0
]]></send>
<recv response="100" optional="true"/>
<recv response="180" optional="true"/>
<recv response="200"/>
<send><![CDATA[
ACK sip:[service]@[remote_ip]:[remote_port] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From: <sip:sipp@[local_ip]:[local_port]>;tag=[call_number]
To: <sip:[service]@[remote_ip]>[peer_tag_param]
Call-ID: [call_id]
CSeq: 2 ACK
Content-Length: 0

]]></send>
<pause milliseconds="200"/>
<send retrans="500"><![CDATA[
BYE sip:[service]@[remote_ip]:[remote_port] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From: <sip:sipp@[local_ip]:[local_port]>;tag=[call_number]
To: <sip:[service]@[remote_ip]>[peer_tag_param]
Call-ID: [call_id]
CSeq: 3 BYE
Content-Length: 0

]]></send>
<recv response="200"/>
</scenario>
`

// Another public client calls ten times, one call after the other, and each ends as it
// should.
func TestPhoneClientsInARow(t *testing.T) {
	binary, err := exec.LookPath("sipp")
	if err != nil {
		t.Fatal("there is no sipp: apt-get install sip-tester")
	}
	s := studio(t)
	key := s.dev["SLUICE_API_KEY"]
	_, l := s.takeCalls(t, key)
	file := filepath.Join(t.TempDir(), "caller.xml")
	if err := os.WriteFile(file, []byte(strings.NewReplacer("USER", l.Username, "PASSWORD", l.Password).Replace(scenario)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, host, _ := strings.Cut(l.URI, "@")
	cmd := exec.Command(binary, host, "-sf", file, "-s", l.ID, "-i", "127.0.0.1", "-m", "10", "-l", "1", "-r", "1", "-timeout", "60", "-nostdin")
	cmd.Dir = t.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	eventually(t, "the end of all calls", func() error {
		calls := s.calls(t, key, l)
		for _, c := range calls.Data {
			if c.State != "completed" || c.Reason != "remote_hangup" {
				return fmt.Errorf("%+v", c)
			}
		}
		if len(calls.Data) != 10 {
			return fmt.Errorf("%d calls", len(calls.Data))
		}
		return nil
	})
}
