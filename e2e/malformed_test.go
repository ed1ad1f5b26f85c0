package e2e

import (
	"bufio"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// malformed are requests that no honest client sends, with the statuses that
// are right; all of them end the connection. The path is open to anybody, so
// that one which passed would be answered 200.
var malformed = map[string]struct {
	text   string
	status int
	code   string
}{
	"length and chunks":          {open("Content-Length: 4\r\nTransfer-Encoding: chunked") + "0\r\n\r\n" + smuggled, 400, "invalid_request"},
	"chunks and length":          {open("Transfer-Encoding: chunked\r\nContent-Length: 4") + "0\r\n\r\n" + smuggled, 400, "invalid_request"},
	"two lengths":                {open("Content-Length: 0\r\nContent-Length: 44") + smuggled, 400, "invalid_request"},
	"a list of lengths":          {open("Content-Length: 0, 44") + smuggled, 400, "invalid_request"},
	"a signed length":            {open("Content-Length: +3") + "abc", 400, "invalid_request"},
	"a negative length":          {open("Content-Length: -1"), 400, "invalid_request"},
	"an empty length":            {open("Content-Length: "), 400, "invalid_request"},
	"a length too long":          {open("Content-Length: 99999999999999999999999"), 400, "invalid_request"},
	"a hexadecimal length":       {open("Content-Length: 0x3") + "abc", 400, "invalid_request"},
	"an unknown encoding":        {open("Transfer-Encoding: xchunked") + "0\r\n\r\n", 501, "not_implemented"},
	"identity after chunked":     {open("Transfer-Encoding: chunked, identity") + "0\r\n\r\n", 501, "not_implemented"},
	"chunked twice":              {open("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked") + "0\r\n\r\n", 501, "not_implemented"},
	"a tab before chunked":       {open("Transfer-Encoding: \x0bchunked") + "0\r\n\r\n", 400, "invalid_request"},
	"a chunk size that is none":  {open("Transfer-Encoding: chunked") + "zz\r\nabc\r\n0\r\n\r\n", 400, "invalid_request"},
	"a negative chunk":           {open("Transfer-Encoding: chunked") + "-1\r\nabc\r\n0\r\n\r\n", 400, "invalid_request"},
	"a chunk too long":           {open("Transfer-Encoding: chunked") + "fffffffffffffffff\r\nabc\r\n0\r\n\r\n", 400, "invalid_request"},
	"NUL in a value":             {open("X-A: a\x00b"), 400, "invalid_request"},
	"NUL in a name":              {open("X-\x00A: b"), 400, "invalid_request"},
	"a control in a value":       {open("X-A: a\x01b"), 400, "invalid_request"},
	"a space before the colon":   {open("Content-Length : 3") + "abc", 400, "invalid_request"},
	"a name with a space":        {open("X A: b"), 400, "invalid_request"},
	"a header without a name":    {open(": b"), 400, "invalid_request"},
	"a header without a colon":   {open("X-A"), 400, "invalid_request"},
	"a first header folded":      {"GET /v1/harsh/open HTTP/1.1\r\n Host: a\r\n\r\n", 400, "invalid_request"},
	"an underscore":              {open("X_Sluice_Identity: forged"), 400, "invalid_request"},
	"no host":                    {"GET /v1/harsh/open HTTP/1.1\r\n\r\n", 400, "invalid_request"},
	"two hosts":                  {open("Host: b"), 400, "repeated_header"},
	"a host with a path":         {"GET /v1/harsh/open HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, "invalid_request"},
	"a host that is none":        {"GET /v1/harsh/open HTTP/1.1\r\nHost: a<b\r\n\r\n", 400, "invalid_request"},
	"a method in lower case":     {"get /v1/harsh/open HTTP/1.1\r\nHost: a\r\n\r\n", 400, "invalid_request"},
	"a method nobody knows":      {"BREW /v1/harsh/open HTTP/1.1\r\nHost: a\r\n\r\n", 400, "invalid_request"},
	"a method with a NUL":        {"G\x00T /v1/harsh/open HTTP/1.1\r\nHost: a\r\n\r\n", 400, "invalid_request"},
	"a version of the future":    {"GET /v1/harsh/open HTTP/3.7\r\nHost: a\r\n\r\n", 426, "invalid_request"},
	"HTTP/1.0":                   {"GET /v1/harsh/open HTTP/1.0\r\nHost: a\r\n\r\n", 426, "invalid_request"},
	"no version":                 {"GET /v1/harsh/open\r\n\r\n", 426, "invalid_request"},
	"a fragment":                 {"GET /v1/harsh/open#x HTTP/1.1\r\nHost: a\r\n\r\n", 400, "invalid_request"},
	"a path with NUL":            {"GET /v1/harsh/o%00pen HTTP/1.1\r\nHost: a\r\n\r\n", 400, "invalid_request"},
	"a path with a control":      {"GET /v1/harsh/o\x01pen HTTP/1.1\r\nHost: a\r\n\r\n", 400, "invalid_request"},
	"an escaped slash":           {"GET /v1/harsh%2Fopen HTTP/1.1\r\nHost: a\r\n\r\n", 400, "invalid_request"},
	"an escaped backslash":       {"GET /v1/harsh%5Copen HTTP/1.1\r\nHost: a\r\n\r\n", 400, "invalid_request"},
	"an absolute form of no use": {"GET ftp://a/v1/harsh/open HTTP/1.1\r\nHost: a\r\n\r\n", 400, "invalid_request"},
	"a long header":              {open("X-A: " + strings.Repeat("a", 100<<10)), 431, "headers_too_large"},
	"many headers":               {open(strings.Repeat("X-A: a\r\n", 200) + "X-B: b"), 431, "headers_too_large"},
	"a long path":                {"GET /v1/harsh/" + strings.Repeat("a", 100<<10) + " HTTP/1.1\r\nHost: a\r\n\r\n", 431, "headers_too_large"},
	"a TLS greeting":             {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x7f", 64), 400, "invalid_request"},
	"not HTTP at all":            {"SSH-2.0-OpenSSH_9.2\r\n\r\n", 400, "invalid_request"},
}

// smuggled is a second request that hides in the body of the first.
const smuggled = "GET /v1/harsh/open HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n"

// open is a request to the open route with more headers.
func open(headers string) string {
	return "POST /v1/harsh/open HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n\r\n"
}

func TestMalformedRequests(t *testing.T) {
	t.Parallel()
	s, _ := theHarsh(t)
	finish := s.bystander(t)
	defer finish()
	for name, c := range malformed {
		t.Run(name, func(t *testing.T) {
			answers := s.whole(t, c.text)
			if len(answers) != 1 {
				t.Fatalf("%d answers: %+v", len(answers), answers)
			}
			wantError(t, answers[0], c.status, c.code)
		})
	}
}

// Requests that are odd and allowed: they mean what they say, and no more.
func TestOddRequests(t *testing.T) {
	t.Parallel()
	s, _ := theHarsh(t)
	for name, c := range map[string]struct {
		text   string
		status int
	}{
		"absolute form":           {"GET http://elsewhere/v1/harsh/open HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 200},
		"two slashes":             {"GET //v1//harsh/open HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 200},
		"dots":                    {"GET /v1/harsh/echo/../open HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 200},
		"dots to the protected":   {"GET /v1/harsh/open/../echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 401},
		"escaped dots":            {"GET /v1/harsh/open/%2e%2e/echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 401},
		"escaped letters":         {"GET /v1/harsh/%65cho HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 401},
		"a semicolon":             {"GET /v1/harsh/echo;x=1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 403},
		"a slash at the end":      {"GET /v1/harsh/echo/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 403},
		"upper case":              {"GET /V1/harsh/open HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 404},
		"an upgrade":              {"GET /v1/harsh/open HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", 403},
		"an upgrade to HTTP/2":    {"GET /v1/harsh/open HTTP/1.1\r\nHost: a\r\nConnection: upgrade, http2-settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n", 200},
		"a tunnel":                {"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\nConnection: close\r\n\r\n", 403},
		"a trace":                 {"TRACE /v1/streams HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 403},
		"a return in a value":     {open("X-A: a\rX-Sluice-Identity: forged\r\nConnection: close"), 200},
		"a chunk without its end": {open("Transfer-Encoding: chunked\r\nConnection: close") + "3\r\nabcdef\r\n0\r\n\r\n", 200},
		"all of the server":       {"OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 404},
		"a method to override":    {"GET /v1/harsh/echo HTTP/1.1\r\nHost: a\r\nX-HTTP-Method-Override: OPTIONS\r\nConnection: close\r\n\r\n", 401},
		"a credential hop by hop": {"GET /v1/harsh/echo HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + s.dev["SLUICE_API_KEY"] +
			"\r\nConnection: authorization, close\r\n\r\n", 401},
	} {
		t.Run(name, func(t *testing.T) {
			answers := s.whole(t, c.text)
			if len(answers) != 1 {
				t.Fatalf("%d answers: %+v", len(answers), answers)
			}
			wantStatus(t, answers[0], c.status)
			if c.status != 200 {
				wantError(t, answers[0], c.status, into[envelope](t, answers[0]).Error.Code)
			} else if saw := into[seen](t, answers[0]); len(saw.Headers[identityHeader]) != 0 || saw.Length > 3 {
				t.Errorf("the product saw %+v", saw)
			}
		})
	}
}

// whole sends text and reads answers until the edge closes the connection.
func (s *stack) whole(t testing.TB, text string) []response {
	t.Helper()
	answers, err := wholly(s.front(), text)
	if err != nil && !closed(err) {
		t.Fatalf("after %d answers: %v", len(answers), err)
	}
	return answers
}

// closed is true of what one meets on a connection that the other side closed.
func closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// What is wrong on HTTP/2 ends the stream or the connection, and nothing passes.
func TestMalformedHTTP2(t *testing.T) {
	t.Parallel()
	s, _ := theHarsh(t)
	finish := s.bystander(t)
	defer finish()
	get := func(more ...string) []string {
		return append([]string{":method", "GET", ":scheme", "http", ":path", "/v1/harsh/open", ":authority", "a"}, more...)
	}
	broken := map[string]func(*http2.Framer) error{
		"broken settings":   func(f *http2.Framer) error { return f.WriteRawFrame(http2.FrameSettings, 0, 0, []byte("garbage")) },
		"a frame too large": func(f *http2.Framer) error { return f.WriteRawFrame(http2.FrameData, 0, 1, make([]byte, 1<<20)) },
		"data on no stream": func(f *http2.Framer) error { return f.WriteData(1, true, []byte("x")) },
		"a stream of zero":  func(f *http2.Framer) error { return f.WriteRawFrame(http2.FrameHeaders, 5, 0, fields(get()...)) },
		"an even stream":    func(f *http2.Framer) error { return f.WriteRawFrame(http2.FrameHeaders, 5, 2, fields(get()...)) },
		"a window of zero":  func(f *http2.Framer) error { return f.WriteRawFrame(http2.FrameWindowUpdate, 0, 0, make([]byte, 4)) },
		"a connection header": func(f *http2.Framer) error {
			return f.WriteRawFrame(http2.FrameHeaders, 5, 1, fields(get("connection", "close")...))
		},
		"an encoding": func(f *http2.Framer) error {
			return f.WriteRawFrame(http2.FrameHeaders, 5, 1, fields(get("transfer-encoding", "chunked")...))
		},
		"upper case": func(f *http2.Framer) error {
			return f.WriteRawFrame(http2.FrameHeaders, 5, 1, fields(get("X-A", "b")...))
		},
		"no path": func(f *http2.Framer) error {
			return f.WriteRawFrame(http2.FrameHeaders, 5, 1, fields(":method", "GET", ":scheme", "http"))
		},
		"a late pseudo-header": func(f *http2.Framer) error {
			return f.WriteRawFrame(http2.FrameHeaders, 5, 1, fields(append([]string{"a", "b"}, get()...)...))
		},
		"a return in a value": func(f *http2.Framer) error {
			return f.WriteRawFrame(http2.FrameHeaders, 5, 1, fields(get("a", "b\r\nx: y")...))
		},
		"broken compression": func(f *http2.Framer) error {
			return f.WriteRawFrame(http2.FrameHeaders, 5, 1, []byte{0xff, 0xff, 0xff, 0xff, 0xff})
		},
		"headers without end": headersWithoutEnd,
		"resets without end":  func(f *http2.Framer) error { return resetsWithoutEnd(f, fields(get()...)) },
	}
	type outcome struct {
		name, status string
		err          error
	}
	outcomes := make(chan outcome, len(broken)) // all at once: each holds its connection for a moment
	for name, send := range broken {
		go func() {
			status, err := frames(s.front(), send)
			outcomes <- outcome{name, status, err}
		}()
	}
	for range broken {
		o := <-outcomes
		if strings.HasPrefix(o.status, "2") || (o.status == "" && o.err != nil && !closed(o.err)) {
			t.Errorf("%s: answered %q, %v", o.name, o.status, o.err)
		}
	}
}

// fields compresses names and values.
func fields(pairs ...string) []byte {
	var b strings.Builder
	e := hpack.NewEncoder(&b)
	for p := range slices.Chunk(pairs, 2) {
		_ = e.WriteField(hpack.HeaderField{Name: p[0], Value: p[1]}) // to memory
	}
	return []byte(b.String())
}

// headersWithoutEnd goes on with the headers of one request past every limit.
func headersWithoutEnd(f *http2.Framer) error {
	if err := f.WriteRawFrame(http2.FrameHeaders, 0, 1, fields(":method", "GET", ":scheme", "http", ":path", "/v1/harsh/open", ":authority", "a")); err != nil {
		return err
	}
	for range 1000 {
		if err := f.WriteRawFrame(http2.FrameContinuation, 0, 1, fields("x-a", strings.Repeat("a", 1000))); err != nil {
			return err
		}
	}
	return nil
}

// resetsWithoutEnd opens streams only to reset them.
func resetsWithoutEnd(f *http2.Framer, headers []byte) error {
	for id := uint32(1); id < 2*20_000; id += 2 {
		if err := errors.Join(f.WriteRawFrame(http2.FrameHeaders, 5, id, headers), f.WriteRSTStream(id, http2.ErrCodeCancel)); err != nil {
			return err
		}
	}
	return nil
}

// frames opens an HTTP/2 connection, lets send break the rules, and reads until
// the stream is answered or reset, or the connection ends.
func frames(addr string, send func(*http2.Framer) error) (status string, err error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	w := bufio.NewWriterSize(conn, 64<<10) // a stream's opening and its reset arrive together: nothing answers in between
	f := http2.NewFramer(w, conn)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	f.AllowIllegalWrites = true
	_, err = w.WriteString(http2.ClientPreface)
	if err := errors.Join(err, f.WriteSettings(), conn.SetDeadline(time.Now().Add(patience))); err != nil {
		return "", err
	}
	go func() { _ = errors.Join(send(f), w.Flush()) }() // a peer that has had enough may close meanwhile
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return "", err
		}
		switch g := frame.(type) {
		case *http2.GoAwayFrame, *http2.RSTStreamFrame:
			return "", nil
		case *http2.MetaHeadersFrame:
			return g.PseudoValue("status"), nil
		}
	}
}
