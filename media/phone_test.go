package media_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/emiago/sipgo"
	siplib "github.com/emiago/sipgo/sip"
	"github.com/pion/rtp"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/files/ffmpeg/ffmpegtest"
	"sluice.dev/sluice/media/phone"
	"sluice.dev/sluice/media/phone/sdp"
	"sluice.dev/sluice/media/phone/sip"
	"sluice.dev/sluice/platform/storage/secretbox"
)

// exchange is a product with the real media engine behind it, which takes calls.
type exchange struct {
	*bundle
	ffmpeg string
	addr   string // where SIP is taken
	site   *httptest.Server
	cancel context.CancelFunc // of the engine's process
}

// newExchange starts one. adjust changes how it takes calls.
func newExchange(t *testing.T, adjust ...func(*sip.Config, *media.Config)) *exchange {
	t.Helper()
	box, err := secretbox.New(strings.Repeat("0", 64))
	if err != nil {
		t.Fatal(err)
	}
	at := addrs(t, 7)
	x := &exchange{ffmpeg: ffmpegtest.Tool(t).Binary, addr: at[6]}
	e := engineAt(t, at)
	telephony := sip.Config{Listen: x.addr, First: 21000, Last: 21999, RTMP: e.RTMP, Calls: 8}
	x.bundle = setup(t, func(c *media.Config) {
		c.Now, c.Box, c.FFmpeg, c.EngineHLS, c.Endpoints.Available = time.Now, box, x.ffmpeg, "http://"+e.HLS+"/live", true
		c.Phone = phone.Settings{Available: true, Host: x.addr}
		c.Scratch = t.TempDir()
		for _, f := range adjust {
			f(&telephony, c)
		}
	})
	e.RTSP = "" // no other part is needed
	x.cancel = x.runEngine(e, media.Beside{Telephony: &telephony})
	await(t, func() bool { return listens(x.addr) })
	x.site = httptest.NewServer(x.handler)
	t.Cleanup(x.site.Close)
	return x
}

// telephone is a client of the library on sockets of its own.
type telephone struct {
	t      *testing.T
	client *sipgo.Client
	agent  *sipgo.DialogUA
	sound  *net.UDPConn
	byes   chan struct{} // of the other side
	dialog *sipgo.DialogClientSession
	answer sdp.Session
}

func newTelephone(t *testing.T) *telephone {
	t.Helper()
	ua, err := sipgo.NewUA(sipgo.WithUserAgent("telephone"), sipgo.WithUserAgentHostname("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ua.Close() })
	server, err := sipgo.NewServer(ua)
	if err != nil {
		t.Fatal(err)
	}
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	go func() { _ = server.ServeUDP(socket) }() // ends with the socket
	p := &telephone{t: t, byes: make(chan struct{}, 1)}
	if p.client, err = sipgo.NewClient(ua); err != nil {
		t.Fatal(err)
	}
	own := socket.LocalAddr().(*net.UDPAddr)
	p.agent = &sipgo.DialogUA{Client: p.client, ContactHDR: siplib.ContactHeader{Address: siplib.Uri{Scheme: "sip", User: "me", Host: "127.0.0.1", Port: own.Port}}}
	server.OnBye(func(req *siplib.Request, tx siplib.ServerTransaction) {
		if err := p.dialog.ReadBye(req, tx); err == nil {
			p.byes <- struct{}{}
		}
	})
	if p.sound, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.sound.Close() })
	return p
}

// offer is what p says with codecs such as "0 101".
func (p *telephone) offer(codecs string) []byte {
	port := strconv.Itoa(p.sound.LocalAddr().(*net.UDPAddr).Port)
	return []byte("v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio " + port + " RTP/AVP " + codecs +
		"\r\na=rtpmap:96 opus/48000/2\r\na=rtpmap:101 telephone-event/8000\r\n")
}

// call calls a line and returns the status with which it was refused; 200: it was not.
func (p *telephone) call(uri, password, codecs string) int {
	p.t.Helper()
	var to siplib.Uri
	if err := siplib.ParseUri(uri, &to); err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), 30*time.Second)
	defer cancel()
	var err error
	p.dialog, err = p.agent.Invite(ctx, to, p.offer(codecs), siplib.NewHeader("Content-Type", "application/sdp"))
	if err != nil {
		p.t.Fatal(err)
	}
	err = p.dialog.WaitAnswer(ctx, sipgo.AnswerOptions{Username: to.User, Password: password})
	if refused, ok := errors.AsType[*sipgo.ErrDialogResponse](err); ok {
		return refused.Res.StatusCode
	}
	if err != nil {
		p.t.Fatal(err)
	}
	if p.answer, err = sdp.Read(p.dialog.InviteResponse.Body()); err != nil {
		p.t.Fatal(err)
	}
	if err := p.dialog.Ack(ctx); err != nil {
		p.t.Fatal(err)
	}
	return 200
}

// play has a public sender of RTP play a tone to the other side until the test ends.
func (p *telephone) play(ffmpeg string, hz int) {
	p.t.Helper()
	codec := map[string][]string{"pcmu": {"-c:a", "pcm_mulaw", "-ar", "8000"}, "pcma": {"-c:a", "pcm_alaw", "-ar", "8000"}, "opus": {"-c:a", "libopus", "-ar", "48000", "-b:a", "24k"}}[p.answer.Codec.Name]
	args := append([]string{"-nostdin", "-loglevel", "error", "-re", "-f", "lavfi", "-i", "sine=frequency=" + strconv.Itoa(hz) + ":duration=120"}, codec...)
	args = append(args, "-ac", "1", "-payload_type", strconv.Itoa(int(p.answer.Codec.Type)), "-f", "rtp", "rtp://"+p.answer.Addr.String()+"?pkt_size=200")
	cmd := exec.Command(ffmpeg, args...)
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// press sends a key as telephones do: several packets of one event.
func (p *telephone) press(event byte) {
	p.t.Helper()
	for i, flags := range []byte{0, 0, 0x80, 0x80, 0x80} {
		payload := binary.BigEndian.AppendUint16([]byte{event, flags | 10}, 1280)
		packet := rtp.Packet{Header: rtp.Header{Version: 2, PayloadType: p.answer.Keys, SequenceNumber: uint16(i), Timestamp: 7000 + uint32(event), SSRC: 9}, Payload: payload}
		raw, err := packet.Marshal()
		if err == nil {
			_, err = p.sound.WriteToUDPAddrPort(raw, p.answer.Addr)
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
}

// info sends a key as SIP INFO.
func (p *telephone) info(body string) {
	p.t.Helper()
	req := siplib.NewRequest(siplib.INFO, p.dialog.InviteResponse.Contact().Address)
	req.AppendHeader(siplib.NewHeader("Content-Type", "application/dtmf-relay"))
	req.SetBody([]byte(body))
	res, err := p.dialog.Do(p.t.Context(), req)
	if err != nil || res.StatusCode != 200 {
		p.t.Fatal(res, err)
	}
}

// bye hangs up.
func (p *telephone) bye() {
	p.t.Helper()
	if err := p.dialog.Bye(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
}

// within is x for a part of a test.
func (x *exchange) within(t *testing.T) *exchange {
	part, all := *x, *x.bundle
	part.bundle, all.t = &all, t
	return &part
}

// line makes a line of a new stream.
func (x *exchange) line(fields object) (stream, line answer) {
	x.t.Helper()
	stream = x.do("POST", "/v1/streams", object{"title": "Call-in", "recording": object{"enabled": true}}).want(201)
	fields["stream_id"] = stream.text("id")
	return stream, x.do("POST", "/v1/phone/lines", fields).want(201)
}

// lastCall waits until the latest call of a line is in a state.
func (x *exchange) lastCall(line answer, state string) (call answer) {
	x.t.Helper()
	await(x.t, func() bool {
		list := x.do("GET", "/v1/phone/calls?line_id="+line.text("id"), nil).want(200)
		return list.get("data.0.state") == state
	})
	id := x.do("GET", "/v1/phone/calls?line_id="+line.text("id"), nil).text("data.0.id")
	return x.do("GET", "/v1/phone/calls/"+id, nil).want(200)
}

// hears plays the stream as a viewer does, until there is a tone in it.
func (x *exchange) hears(stream answer, hz float64) {
	x.t.Helper()
	address := x.site.URL + "/v1/playback/" + stream.text("playback_id") + "/index.m3u8"
	await(x.t, func() bool {
		sound, err := sound(x.t, x.ffmpeg, 8000, 1, "-i", address, "-t", "2")
		return err == nil && share(sound[0], 8000, hz) > most
	})
}

// The sound of a call by telephone is that of its stream: found in what a viewer plays.
func TestACallIsHeardInItsStream(t *testing.T) {
	t.Parallel()
	x := newExchange(t)
	for codecs, c := range map[string]struct {
		name string
		hz   int
	}{"0 101": {"pcmu", 700}, "8 0 101": {"pcma", 900}, "96 0 101": {"opus", 1300}} {
		t.Run(c.name, func(t *testing.T) {
			x := x.within(t)
			stream, line := x.line(object{})
			p := newTelephone(t)
			if status := p.call(line.text("uri"), line.text("password"), codecs); status != 200 {
				t.Fatalf("refused with %d", status)
			}
			p.play(x.ffmpeg, c.hz)
			call := x.lastCall(line, "in_progress")
			if call.text("codec") != c.name || call.text("direction") != "inbound" || call.text("stream_id") != stream.text("id") {
				t.Errorf("%s", call.raw)
			}
			x.hears(stream, float64(c.hz))
			p.press(5)
			p.press(11)
			p.info("Signal=7\r\nDuration=250\r\n")
			if status := newTelephone(t).call(line.text("uri"), line.text("password"), codecs); status != 486 {
				t.Errorf("a second caller: %d", status)
			}
			p.bye()
			await(t, func() bool { return x.do("GET", "/v1/phone/calls/"+call.text("id"), nil).text("state") == "completed" })
			ended := x.do("GET", "/v1/phone/calls/"+call.text("id"), nil).want(200)
			if ended.text("reason") != "remote_hangup" || ended.get("duration") == nil {
				t.Errorf("%s", ended.raw)
			}
			await(t, func() bool { return x.do("GET", "/v1/streams/"+stream.text("id"), nil).text("status") == "ended" })
			var kinds, keys []string
			for _, e := range x.events() {
				if e.StreamID == stream.text("id") {
					kinds = append(kinds, e.Type)
					if e.Type == "phone.dtmf" {
						keys = append(keys, e.Data["digit"].(string)+" "+e.Data["method"].(string))
					}
				}
			}
			slices.Sort(keys) // sound and signals go different ways
			if got := strings.Join(keys, ", "); got != "# rtp, 5 rtp, 7 info" {
				t.Errorf("keys: %s", got)
			}
			for _, want := range []string{"phone.call_started", "phone.call_ended", "stream.started", "stream.ended"} {
				if !strings.Contains(strings.Join(kinds, " "), want) {
					t.Errorf("no %s among %v", want, kinds)
				}
			}
		})
	}
}
