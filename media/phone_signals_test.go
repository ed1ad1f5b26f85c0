package media_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/emiago/sipgo"
	siplib "github.com/emiago/sipgo/sip"
	"github.com/icholy/digest"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/phone"
	"sluice.dev/sluice/media/phone/sip"
	"sluice.dev/sluice/platform/storage/secretbox"
)

// signals is a product that speaks SIP and has no media engine: what begins and ends
// calls, without their sound.
func signals(t *testing.T) *exchange {
	t.Helper()
	box, err := secretbox.New(strings.Repeat("0", 64))
	if err != nil {
		t.Fatal(err)
	}
	x := &exchange{addr: addrs(t, 1)[0]}
	x.bundle = setup(t, func(c *media.Config) {
		c.Now, c.Box, c.Phone = time.Now, box, phone.Settings{Available: true, Host: x.addr}
	})
	ctx, cancel := context.WithCancel(context.Background())
	server := media.NewTelephony(x.config, sip.Config{Listen: x.addr, First: 23000, Last: 23999})
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	await(t, func() bool {
		c, err := net.Dial("tcp", x.addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return x
}

// signaller is a connection on which a test writes messages itself.
type signaller struct {
	t *testing.T
	net.Conn
	network string
	number  int
}

func (x *exchange) dial(network string) *signaller {
	x.t.Helper()
	c, err := net.Dial(network, x.addr)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { c.Close() })
	return &signaller{t: x.t, Conn: c, network: network}
}

// send sends a request with headers, each of which ends with a line break.
func (w *signaller) send(method, uri, headers string) {
	w.t.Helper()
	w.number++
	text := fmt.Sprintf("%s %s SIP/2.0\r\nVia: SIP/2.0/%s %s;branch=z9hG4bK%d;rport\r\nMax-Forwards: 70\r\nFrom: <sip:me@127.0.0.1>;tag=me\r\nTo: <%s>\r\nCall-ID: %s-%p\r\nCSeq: %d %s\r\n"+
		"Contact: <sip:me@%s>\r\n%sContent-Length: 0\r\n\r\n", method, uri, strings.ToUpper(w.network), w.LocalAddr(), w.number, uri, w.LocalAddr(), w, w.number, method, w.LocalAddr(), headers)
	if _, err := w.Write([]byte(text)); err != nil {
		w.t.Fatal(err)
	}
}

// next reads one message.
func (w *signaller) next(in *bufio.Reader) (first string, headers textproto.MIMEHeader) {
	w.t.Helper()
	if err := w.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		w.t.Fatal(err)
	}
	reader := textproto.NewReader(in)
	first, err := reader.ReadLine()
	if err == nil {
		headers, err = reader.ReadMIMEHeader()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	body, _ := strconv.Atoi(headers.Get("Content-Length"))
	if _, err := in.Discard(body); err != nil {
		w.t.Fatal(err)
	}
	return first, headers
}

// reader reads what comes on w.
func (w *signaller) reader() *bufio.Reader { return bufio.NewReaderSize(w, 1<<16) }

// By UDP and by TCP, telephones learn what we know and whether their password is right.
func TestOptionsAndRegistrations(t *testing.T) {
	t.Parallel()
	x := signals(t)
	_, line := x.line(object{})
	for _, network := range []string{"udp", "tcp"} {
		w := x.dial(network)
		in := w.reader()
		w.send("OPTIONS", "sip:"+x.addr, "")
		if first, h := w.next(in); first != "SIP/2.0 200 OK" || !strings.Contains(h.Get("Allow"), "INVITE") || h.Get("Accept") != "application/sdp" {
			t.Errorf("%s %v", first, h)
		}
		w.send("SUBSCRIBE", line.text("uri"), "")
		if first, h := w.next(in); first != "SIP/2.0 405 Method Not Allowed" || h.Get("Allow") == "" {
			t.Errorf("%s %v", first, h)
		}
		for _, method := range []string{"BYE", "INFO"} {
			w.send(method, line.text("uri"), "")
			if first, _ := w.next(in); !strings.HasPrefix(first, "SIP/2.0 481 ") {
				t.Error(method, first)
			}
		}
		for password, want := range map[string]string{line.text("password"): "SIP/2.0 200 OK", "sip_wrong": "SIP/2.0 403 Forbidden"} {
			w.send("REGISTER", "sip:"+x.addr, "")
			first, h := w.next(in)
			asked, err := digest.ParseChallenge(h.Get("WWW-Authenticate"))
			if err != nil || !strings.HasPrefix(first, "SIP/2.0 401 ") {
				t.Fatal(first, err)
			}
			said, err := digest.Digest(asked, digest.Options{Method: "REGISTER", URI: "sip:" + x.addr, Username: line.text("username"), Password: password})
			if err != nil {
				t.Fatal(err)
			}
			w.send("REGISTER", "sip:"+x.addr, "Authorization: "+said.String()+"\r\nExpires: 7200\r\n")
			if first, h = w.next(in); first != want || strings.Contains(want, "200") && (h.Get("Expires") != "600" || !strings.Contains(h.Get("Contact"), w.LocalAddr().String())) {
				t.Errorf("%s %v, want %s", first, h, want)
			}
			if strings.Contains(want, "200") { // who overheard it has no use of it
				w.send("REGISTER", "sip:"+x.addr, "Authorization: "+said.String()+"\r\n")
				if first, h = w.next(in); !strings.HasPrefix(first, "SIP/2.0 401 ") || !strings.Contains(h.Get("WWW-Authenticate"), "stale=true") {
					t.Errorf("again: %s %v", first, h)
				}
			}
		}
		awaitNextSecond(t)
	}
}

// A request that is one too many is refused where it would not come again, and the
// connection of an address that sends too much ends.
func TestConnectionsAreAnsweredOrEnd(t *testing.T) {
	t.Parallel()
	x := signals(t)
	w := x.dial("tcp")
	in := w.reader()
	refused := 0
	for range 11 { // in one second, or in two of which the second has what is left
		w.send("OPTIONS", "sip:"+x.addr, "")
	}
	for range 11 {
		switch first, h := w.next(in); {
		case first == "SIP/2.0 503 Service Unavailable" && h.Get("Retry-After") == "1":
			refused++
		case first != "SIP/2.0 200 OK":
			t.Errorf("%s %v", first, h)
		}
	}
	for range 200 {
		if _, err := fmt.Fprintf(w, "OPTIONS sip:%s SIP/2.0\r\nContent-Length: 0\r\n\r\n", x.addr); err != nil {
			break
		}
	}
	if err := w.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	var err error
	for err == nil {
		_, err = in.ReadByte()
	}
	if refused > 1 && refused < 11 || strings.Contains(err.Error(), "timeout") {
		t.Errorf("%d refused, then %v", refused, err)
	}
}

// An answer repeats the ways that its request came by, however many they are.
func TestLongAnswersAreSent(t *testing.T) {
	t.Parallel()
	x := signals(t)
	w := x.dial("udp")
	w.send("OPTIONS", "sip:"+x.addr, strings.Repeat("Via: SIP/2.0/UDP "+strings.Repeat("a", 200)+".example;branch=z9hG4bKx\r\n", 10))
	if first, h := w.next(w.reader()); first != "SIP/2.0 200 OK" || len(h.Values("Via")) != 11 {
		t.Errorf("%s with %d ways", first, len(h.Values("Via")))
	}
}

// A process that finds its address taken leaves the calls of the one that has it alone.
func TestASecondProcessLeavesCallsAlone(t *testing.T) {
	t.Parallel()
	x := signals(t)
	stream, line := x.line(object{})
	const insert = `INSERT INTO phone_calls (id, owner, account, line_id, stream_id, direction, state, remote, created_at)
		SELECT 'call_00000000000000000000', owner, account, id, $2, 'inbound', 'in_progress', 'sip:me@127.0.0.1', now() FROM phone_lines WHERE id = $1`
	if _, err := x.pool.Exec(t.Context(), insert, line.text("id"), stream.text("id")); err != nil {
		t.Fatal(err)
	}
	if err := media.NewTelephony(x.config, sip.Config{Listen: x.addr, First: 23000, Last: 23999}).Run(t.Context()); err == nil {
		t.Fatal("two have one address")
	}
	x.lastCall(line, "in_progress")
}

// A password that is replaced stays so, whatever else of the line changes meanwhile.
func TestAReplacedPasswordStaysReplaced(t *testing.T) {
	t.Parallel()
	x := signals(t)
	_, line := x.line(object{})
	path := "/v1/phone/lines/" + line.text("id")
	ctx := t.Context()
	lock, err := x.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Rollback(ctx) }()
	// Whoever changes the line waits for this lock with what it has read before.
	if _, err := lock.Exec(ctx, `SELECT FROM phone_lines WHERE id = $1 FOR UPDATE`, line.text("id")); err != nil {
		t.Fatal(err)
	}
	changed := make(chan answer, 1)
	go func() { changed <- x.do("PATCH", path, object{"name": "Studio"}) }()
	await(t, func() bool {
		var waiting bool
		err := x.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE phone_lines%' AND datname = current_database())`).Scan(&waiting)
		return err == nil && waiting
	})
	if _, err := lock.Exec(ctx, `UPDATE phone_lines SET secret = '\x00', password_hint = 'new' WHERE id = $1`, line.text("id")); err != nil {
		t.Fatal(err)
	}
	if err := lock.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	(<-changed).want(http.StatusOK)
	var secret []byte
	if err := x.pool.QueryRow(ctx, `SELECT secret FROM phone_lines WHERE id = $1`, line.text("id")).Scan(&secret); err != nil || !bytes.Equal(secret, []byte{0}) {
		t.Errorf("%x, %v", secret, err)
	}
}

// reinvite makes an offer within the call and returns the direction that answers it.
func (p *telephone) reinvite(lines string) string {
	p.t.Helper()
	req := siplib.NewRequest(siplib.INVITE, p.dialog.InviteResponse.Contact().Address)
	req.AppendHeader(siplib.NewHeader("Content-Type", "application/sdp"))
	req.AppendHeader(&p.agent.ContactHDR)
	if lines != "" {
		req.SetBody(append(p.offer("0 101"), lines...))
	}
	res, err := p.dialog.Do(p.t.Context(), req)
	if err != nil || res.StatusCode != 200 {
		p.t.Fatal(res, err)
	}
	ack := siplib.NewRequest(siplib.ACK, req.Recipient)
	if err := p.dialog.WriteAck(p.t.Context(), ack); err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(res.Body())) {
		if d, ok := strings.CutPrefix(strings.TrimSpace(line), "a="); ok && (strings.HasPrefix(d, "send") || strings.HasPrefix(d, "recv") || d == "inactive") {
			return d
		}
	}
	return ""
}

// A call by TCP is held, taken up again and refreshed, and ends when it has lasted for
// as long as its line lets it.
func TestACallByTCP(t *testing.T) {
	t.Parallel()
	x := newExchange(t)
	stream, line := x.line(object{})
	if _, err := x.pool.Exec(t.Context(), `UPDATE phone_lines SET max_duration = 8`); err != nil { // the API takes no less than a minute
		t.Fatal(err)
	}
	p := newTelephone(t)
	if got := p.call(line.text("uri")+";transport=tcp", line.text("password"), "0 101"); got != 200 {
		t.Fatal(got)
	}
	for lines, want := range map[string]string{"a=sendonly\r\n": "recvonly", "a=inactive\r\n": "inactive"} {
		if got := p.reinvite(lines); got != want {
			t.Errorf("held by %q: %s", lines, got)
		}
		if got := p.reinvite("a=sendrecv\r\n"); got != "sendrecv" {
			t.Errorf("taken up again: %s", got)
		}
	}
	if got := p.reinvite(""); got != "sendrecv" {
		t.Errorf("refreshed: %s", got)
	}
	p.play(x.ffmpeg, 500)
	x.hears(stream, 500)
	<-p.byes
	if got := x.lastCall(line, "completed"); got.text("reason") != "max_duration" {
		t.Errorf("%s", got.raw)
	}
}

// We hang up where a call came from, whatever route its caller names, and hear sound
// from nowhere else than there.
func TestACallerCannotSendUsElsewhere(t *testing.T) {
	t.Parallel()
	x := newExchange(t, func(c *sip.Config, _ *media.Config) { c.Silence = 3 * time.Second })
	_, line := x.line(object{"auth": "allowlist", "allowlist": []string{"127.0.0.1"}})
	p := newTelephone(t)
	other, err := net.ListenPacket("udp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var to siplib.Uri
	if err := siplib.ParseUri(line.text("uri"), &to); err != nil {
		t.Fatal(err)
	}
	p.dialog, err = p.agent.Invite(ctx, to, p.offer("0"), siplib.NewHeader("Content-Type", "application/sdp"), siplib.NewHeader("Record-Route", "<sip:"+other.LocalAddr().String()+";lr>"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.dialog.WaitAnswer(ctx, sipgo.AnswerOptions{}); err != nil {
		t.Fatal(err)
	}
	// The library, too, sends to the route that stands in the answer: to where it came from.
	p.dialog.InviteResponse.RemoveHeader("Record-Route")
	if err := p.dialog.Ack(ctx); err != nil {
		t.Fatal(err)
	}
	x.lastCall(line, "in_progress")
	stop := make(chan struct{})
	sending := make(chan struct{})
	go func() { // sound from elsewhere counts as none
		defer close(sending)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for i := byte(0); ; i++ {
			select {
			case <-stop:
				return
			case <-tick.C:
				for port := 21000; port < 21040; port++ {
					_, _ = other.WriteTo(append([]byte{0x80, 0, 0, i, 0, 0, i, 0, 1, 2, 3, 4}, make([]byte, 160)...), &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
				}
			}
		}
	}()
	<-p.byes
	close(stop)
	<-sending
	if got := x.lastCall(line, "completed"); got.text("reason") != "no_media" {
		t.Errorf("%s", got.raw)
	}
}
