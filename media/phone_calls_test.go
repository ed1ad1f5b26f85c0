package media_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/emiago/sipgo"
	siplib "github.com/emiago/sipgo/sip"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/phone"
	"sluice.dev/sluice/media/phone/sdp"
	"sluice.dev/sluice/media/phone/sip"
)

// Whoever may not call is told the same of lines that are there and of others.
func TestWhoMayCall(t *testing.T) {
	t.Parallel()
	x := newExchange(t)
	stream, line := x.line(object{})
	_, other := x.line(object{})
	_, closed := x.line(object{"auth": "allowlist", "allowlist": []string{"192.0.2.0/24"}})
	uri, nobody := line.text("uri"), "sip:line_00000000000000000000@"+x.addr
	cases := map[string]struct {
		uri, password, codecs string
		want                  int
	}{
		"no password":                    {uri, "", "0", 401},
		"no such line":                   {nobody, "", "0", 401},
		"an address that is not allowed": {closed.text("uri"), "", "0", 401},
		"a wrong password":               {uri, "sip_wrong", "0", 403},
		"a password for no line":         {nobody, "sip_wrong", "0", 403},
		"another line's":                 {uri, other.text("password"), "0", 403},
		"a password for an allowlist":    {closed.text("uri"), line.text("password"), "0", 403},
		"no codec of ours":               {uri, line.text("password"), "9 18", 488},
	}
	for name, c := range cases {
		if got := newTelephone(t).call(c.uri, c.password, c.codecs); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if got := x.lastCall(line, "failed"); got.text("reason") != "codec_unsupported" || !strings.Contains(x.eventTypes(), "phone.call_ended") {
		t.Errorf("%s", got.raw)
	}
	again := x.do("POST", "/v1/phone/lines/"+line.text("id")+"/password", nil).want(200)
	if got := newTelephone(t).call(uri, line.text("password"), "0"); got != 403 {
		t.Errorf("the password of before: %d", got)
	}
	p := newTelephone(t)
	if got := p.call(uri, again.text("password"), "0"); got != 200 {
		t.Errorf("the new password: %d", got)
	}
	x.act(stream.text("id"), "stop").want(200) // not on air yet: nothing to stop
	x.do("POST", "/v1/phone/calls/"+x.lastCall(line, "in_progress").text("id")+"/hangup", nil).want(200)
	<-p.byes
	if got := x.lastCall(line, "completed"); got.text("reason") != "hangup" {
		t.Errorf("%s", got.raw)
	}
	x.do("POST", "/v1/phone/calls/"+x.lastCall(line, "completed").text("id")+"/hangup", nil).want(200)
}

// An address that guesses passwords is refused unread after ten, with the right one too.
func TestPasswordsAreNotGuessed(t *testing.T) {
	t.Parallel()
	x := newExchange(t)
	_, line := x.line(object{})
	for i := range 10 {
		if got := newTelephone(t).call(line.text("uri"), "sip_"+strings.Repeat("x", i), "0"); got != 403 {
			t.Fatal(got)
		}
		if i%4 == 3 { // as many as an address may begin in a second
			awaitNextSecond(t)
		}
	}
	awaitNextSecond(t)
	if got := newTelephone(t).call(line.text("uri"), line.text("password"), "0"); got != 403 {
		t.Errorf("the right password: %d", got)
	}
}

// awaitNextSecond waits for the clock to turn to another second.
func awaitNextSecond(t *testing.T) {
	t.Helper()
	now := time.Now().Unix()
	await(t, func() bool { return time.Now().Unix() != now })
}

// A stream that is stopped hangs up, and an address on the list needs no password.
func TestAStreamThatStopsHangsUp(t *testing.T) {
	t.Parallel()
	x := newExchange(t)
	stream, line := x.line(object{"auth": "allowlist", "allowlist": []string{"127.0.0.1"}, "number": "+493012345678"})
	p := newTelephone(t)
	if got := p.call("sip:+493012345678@"+x.addr, "", "0"); got != 200 {
		t.Fatal(got)
	}
	p.play(x.ffmpeg, 500)
	await(t, func() bool { return x.do("GET", "/v1/streams/"+stream.text("id"), nil).text("status") == "live" })
	x.act(stream.text("id"), "stop").want(200)
	<-p.byes
	if got := x.lastCall(line, "completed"); got.text("reason") != "stream_stopped" || got.text("to") != line.text("uri") {
		t.Errorf("%s", got.raw)
	}
}

// Calls are bounded: one too many is refused, and one without sound ends.
func TestCallsAreBounded(t *testing.T) {
	t.Parallel()
	x := newExchange(t, func(c *sip.Config, _ *media.Config) { c.Calls, c.Silence = 4, 3*time.Second })
	_, line := x.line(object{})
	_, second := x.line(object{})
	p := newTelephone(t)
	if got := p.call(line.text("uri"), line.text("password"), "0"); got != 200 {
		t.Fatal(got)
	}
	if got := newTelephone(t).call(second.text("uri"), second.text("password"), "0"); got != 503 {
		t.Errorf("a second call of an account that may have one: %d", got)
	}
	<-p.byes
	if got := x.lastCall(line, "completed"); got.text("reason") != "no_media" {
		t.Errorf("%s", got.raw)
	}
	if got := x.lastCall(second, "failed"); got.text("reason") != "too_many_calls" {
		t.Errorf("%s", got.raw)
	}
}

// A process that ends hangs up, and what one that was killed left open is ended by the
// next.
func TestCallsEndWithTheirProcess(t *testing.T) {
	t.Parallel()
	x := newExchange(t)
	_, line := x.line(object{})
	p := newTelephone(t)
	if got := p.call(line.text("uri"), line.text("password"), "0"); got != 200 {
		t.Fatal(got)
	}
	x.lastCall(line, "in_progress")
	x.cancel()
	<-p.byes
	if got := x.lastCall(line, "failed"); got.text("reason") != "interrupted" {
		t.Errorf("%s", got.raw)
	}
	if _, err := x.pool.Exec(t.Context(), `UPDATE phone_calls SET state = 'in_progress', ended_at = NULL`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	next := media.NewTelephony(x.config, sip.Config{Listen: "127.0.0.1:0", First: 21000, Last: 21999})
	go func() { done <- next.Run(ctx) }()
	if got := x.lastCall(line, "failed"); got.text("reason") != "interrupted" {
		t.Errorf("%s", got.raw)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// newTrunk makes a trunk that answers with status.
func newTrunk(t *testing.T, p *telephone, status int) (host string) {
	t.Helper()
	ua, err := sipgo.NewUA(sipgo.WithUserAgentHostname("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ua.Close() })
	server, err := sipgo.NewServer(ua)
	if err != nil {
		t.Fatal(err)
	}
	client, err := sipgo.NewClient(ua)
	if err != nil {
		t.Fatal(err)
	}
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	own := socket.LocalAddr().(*net.UDPAddr)
	cache := sipgo.NewDialogServerCache(client, siplib.ContactHeader{Address: siplib.Uri{Scheme: "sip", User: "trunk", Host: "127.0.0.1", Port: own.Port}})
	server.OnInvite(func(req *siplib.Request, tx siplib.ServerTransaction) {
		dialog, err := cache.ReadInvite(req, tx)
		if err != nil {
			t.Error(err)
			return
		}
		if status != 200 {
			_ = dialog.Respond(status, "No", nil)
			return
		}
		if p.answer, err = sdp.Read(req.Body()); err != nil {
			t.Error(err)
		}
		p.byes <- struct{}{} // it rings
		_ = dialog.RespondSDP(p.offer("0 101"))
		<-dialog.Context().Done()
	})
	server.OnAck(func(req *siplib.Request, tx siplib.ServerTransaction) { _ = cache.ReadAck(req, tx) })
	server.OnBye(func(req *siplib.Request, tx siplib.ServerTransaction) {
		_ = cache.ReadBye(req, tx)
		p.byes <- struct{}{}
	})
	go func() { _ = server.ServeUDP(socket) }() // ends with the socket
	return socket.LocalAddr().String()
}

// A call out rings at the trunk, whoever answers is heard, and nobody else is called.
func TestCallsOut(t *testing.T) {
	t.Parallel()
	p := newTelephone(t)
	trunk := newTrunk(t, p, 200)
	x := newExchange(t, func(c *sip.Config, m *media.Config) {
		c.Trunk = sip.Trunk{Host: trunk, User: "sluice", Transport: "udp"}
		m.Phone.Trunk, m.Phone.Prefixes = trunk, []string{"+4930", "desk-"}
	})
	stream, line := x.line(object{"number": "+493099999999"})
	for _, to := range []string{"", "49301", "sip:someone@192.0.2.1", "sip:a b@" + trunk, "sip:x@" + trunk + ";maddr=192.0.2.1", "sip:x", "tel:+49301",
		"+19005550100", "+493", "sip:004930123@" + trunk, "sip:x@" + trunk} { // which begin with none of the prefixes
		x.do("POST", "/v1/phone/calls", object{"line_id": line.text("id"), "to": to}).wantError(400, "invalid_request", "to")
	}
	x.do("POST", "/v1/phone/calls", object{"line_id": "line_x", "to": "+493012345678"}).wantError(400, "invalid_request", "line_id")
	call := x.do("POST", "/v1/phone/calls", object{"line_id": line.text("id"), "to": "+493012345678"}).want(201)
	if call.text("state") != "queued" || call.text("to") != "sip:+493012345678@"+trunk || call.text("from") != line.text("uri") {
		t.Errorf("%s", call.raw)
	}
	x.do("POST", "/v1/phone/calls", object{"line_id": line.text("id"), "to": "+493012345678"}).wantError(409, "conflict")
	<-p.byes
	p.answer.Codec = sdp.Codec{Name: sdp.PCMU, Rate: 8000}
	p.play(x.ffmpeg, 600)
	x.lastCall(line, "in_progress")
	x.hears(stream, 600)
	x.do("POST", "/v1/phone/calls/"+call.text("id")+"/hangup", nil).want(200)
	<-p.byes
	if got := x.lastCall(line, "completed"); got.text("reason") != "hangup" || got.text("direction") != "outbound" {
		t.Errorf("%s", got.raw)
	}
}

// What the other side says of a call that it does not take is what its owner reads.
func TestCallsOutThatAreNotTaken(t *testing.T) {
	t.Parallel()
	for status, reason := range map[int]string{486: "busy", 404: "unreachable", 603: "declined", 480: "no_answer"} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			trunk := newTrunk(t, nil, status)
			x := &exchange{bundle: setup(t, func(c *media.Config) {
				c.Now, c.Phone = time.Now, phone.Settings{Available: true, Host: "127.0.0.1", Trunk: trunk, Prefixes: []string{"+"}}
			})}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			server := media.NewTelephony(x.config, sip.Config{Listen: "127.0.0.1:0", First: 22000, Last: 22999, Trunk: sip.Trunk{Host: trunk, Transport: "udp"}})
			go func() { done <- server.Run(ctx) }()
			stream := x.do("POST", "/v1/streams", object{"title": "Call-in"}).want(201)
			line := x.do("POST", "/v1/phone/lines", object{"stream_id": stream.text("id"), "auth": "allowlist", "allowlist": []string{"192.0.2.1"}}).want(201)
			x.do("POST", "/v1/phone/calls", object{"line_id": line.text("id"), "to": "+493012345678"}).want(201)
			if got := x.lastCall(line, "failed"); got.text("reason") != reason {
				t.Errorf("%s", got.raw)
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// Lines belong to accounts, and every bad field is named.
func TestLines(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *media.Config) { c.Phone = phone.Settings{Available: true, Host: "sip.example:5060"} })
	stream := b.do("POST", "/v1/streams", object{"title": "Call-in"}).want(201).text("id")
	b.do("GET", "/v1/phone", nil).want(200)
	b.do("POST", "/v1/phone/lines", object{"stream_id": stream}).wantError(501, "not_implemented") // no key to seal passwords with
	open := []string{"192.0.2.0/24", "2001:db8::1"}
	b.do("POST", "/v1/phone/lines", object{"stream_id": "strm_x", "number": "030", "auth": "none", "max_duration": 1, "name": "\x01"}).
		wantError(400, "invalid_request", "stream_id", "number", "auth", "max_duration", "name")
	b.do("POST", "/v1/phone/lines", object{"stream_id": stream, "auth": "allowlist"}).wantError(400, "invalid_request", "allowlist")
	b.do("POST", "/v1/phone/lines", object{"stream_id": stream, "auth": "allowlist", "allowlist": []string{"0.0.0.0/0", "::/0", "x", "::ffff:1.2.3.4/100"}}).
		wantError(400, "invalid_request", "allowlist.0", "allowlist.1", "allowlist.2", "allowlist.3")
	line := b.do("POST", "/v1/phone/lines", object{"stream_id": stream, "auth": "allowlist", "allowlist": open, "number": "+4930123"}).want(201)
	path := "/v1/phone/lines/" + line.text("id")
	if line.header.Get("Location") != path || line.text("allowlist.1") != "2001:db8::1/128" || line.text("uri") != "sip:"+line.text("id")+"@sip.example:5060" {
		t.Errorf("%s %v", line.raw, line.header)
	}
	b.do("POST", "/v1/phone/lines", object{"stream_id": stream, "auth": "allowlist", "allowlist": open, "number": "+4930123"}).wantError(409, "conflict")
	b.do("POST", path+"/password", nil).wantError(409, "conflict")
	b.do("PATCH", path, object{"auth": "digest"}).wantError(400, "invalid_request", "auth", "allowlist")
	if got := b.do("PATCH", path, object{"number": "", "max_duration": 60, "name": "Studio"}).want(200); got.get("number") != nil || got.get("max_duration") != 60.0 {
		t.Errorf("%s", got.raw)
	}
	if got := b.do("GET", "/v1/phone/lines?stream_id="+stream, nil).want(200); got.get("pagination.total") != 1.0 {
		t.Errorf("%s", got.raw)
	}
	b.do("POST", "/v1/phone/calls", object{"line_id": line.text("id"), "to": "+493012345678"}).wantError(501, "not_implemented") // no trunk
	b.do("GET", "/v1/phone/calls?state=odd", nil).wantError(400, "invalid_request", "state")
	stranger := identityheader.Caller{Account: "acct_2", Key: "key_2"}
	for _, method := range []string{"GET", "PATCH", "DELETE"} {
		b.as(stranger, method, path, object{}).wantError(404, "not_found")
	}
	b.as(stranger, "POST", "/v1/phone/lines", object{"stream_id": stream, "auth": "allowlist", "allowlist": open}).wantError(400, "invalid_request", "stream_id")
	b.do("DELETE", path, nil).want(204)
	b.do("GET", path, nil).wantError(404, "not_found")
	off := setup(t)
	off.do("POST", "/v1/phone/lines", object{"stream_id": stream}).wantError(501, "not_implemented")
}
