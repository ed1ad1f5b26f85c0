package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/e2e/harness"
)

// begin sends a request to a stream of the product and returns the product's
// side of it at once.
func (s *stack) begin(t testing.TB, p *product, ctx context.Context, path string, body io.Reader) (*exchange, chan begun) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url(path), body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.dev["SLUICE_API_KEY"])
	answered := make(chan begun, 1)
	go func() {
		res, err := streaming.Do(req)
		answered <- begun{res, err}
	}()
	return p.next(t, path[strings.LastIndex(path, "/")+1:]), answered
}

// begun is an answer of which the headers have come.
type begun struct {
	*http.Response
	err error
}

// streaming is a client that waits as long as a stream takes.
var streaming = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func headersOf(t testing.TB, answered chan begun) *http.Response {
	t.Helper()
	select {
	case b := <-answered:
		if b.err != nil {
			t.Fatal(b.err)
		}
		return b.Response
	case <-time.After(patience):
		t.Fatal("no answer")
		return nil
	}
}

// Each event is with the client before the product says the next.
func TestEventsAsTheyCome(t *testing.T) {
	t.Parallel()
	s, p := theHarsh(t)
	e, answered := s.begin(t, p, t.Context(), "/v1/harsh/stream/events", nil)
	defer close(e.done)
	e.w.Header().Set("Content-Type", "text/event-stream")
	e.say(t, "data: 0\n\n")
	res := headersOf(t, answered)
	defer res.Body.Close()
	from := bufio.NewReader(res.Body)
	for i := range 20 {
		line, err := from.ReadString('\n')
		if err != nil || line != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("event %d: %q, %v", i, line, err)
		}
		if _, err := from.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		e.say(t, fmt.Sprintf("data: %d\n\n", i+1))
	}
}

// Each part of an upload is with the product before the client sends the next.
func TestUploadAsItComes(t *testing.T) {
	t.Parallel()
	s, p := theHarsh(t)
	body, send := io.Pipe()
	e, answered := s.begin(t, p, t.Context(), "/v1/harsh/stream/upload", body)
	for i := range 20 {
		part := []byte(fmt.Sprintf("part %02d", i))
		if _, err := send.Write(part); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(part))
		if _, err := io.ReadFull(e.r.Body, got); err != nil || !bytes.Equal(got, part) {
			t.Fatalf("part %d: %q, %v", i, got, err)
		}
	}
	send.Close()
	if rest, err := io.ReadAll(e.r.Body); err != nil || len(rest) > 0 {
		t.Fatal(rest, err)
	}
	close(e.done)
	if res := headersOf(t, answered); res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
}

// A client that leaves ends the product's work, in either half of the exchange.
func TestClientThatLeaves(t *testing.T) {
	t.Parallel()
	s, p := theHarsh(t)
	for _, while := range []string{"waiting", "reading", "sending"} {
		ctx, leave := context.WithCancel(t.Context())
		body, send := io.Pipe()
		var upload io.Reader
		if while == "sending" {
			upload = body
		}
		e, answered := s.begin(t, p, ctx, "/v1/harsh/stream/leaves-"+while, upload)
		switch while {
		case "reading":
			e.say(t, "data: 0\n\n")
			defer headersOf(t, answered).Body.Close()
		case "sending":
			if _, err := send.Write([]byte("a part")); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(e.r.Body, make([]byte, 6)); err != nil {
				t.Fatal(err)
			}
		}
		leave()
		if while == "sending" { // a server notices by the body first
			if _, err := io.ReadAll(e.r.Body); err == nil {
				t.Error("sending: the body ended as if it were whole")
			}
		}
		select {
		case <-e.r.Context().Done():
		case <-time.After(patience):
			t.Errorf("%s: the product works on", while)
		}
		send.Close()
		close(e.done)
	}
}

// On a streaming route silence ends a stream, and its length does not: here one
// that speaks for two and a half times as long as it may be silent.
func TestSilenceEndsAStream(t *testing.T) {
	t.Parallel()
	s, p := theHarsh(t)
	e, answered := s.begin(t, p, t.Context(), "/v1/harsh/idle/talks", nil)
	defer close(e.done)
	pace := time.NewTicker(100 * time.Millisecond)
	defer pace.Stop()
	for range 50 {
		e.say(t, "x")
		<-pace.C
	}
	res := headersOf(t, answered)
	defer res.Body.Close()
	// Now it is silent: the edge ends both sides.
	got, err := io.ReadAll(res.Body)
	if len(got) != 50 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%d bytes, then %v", len(got), err)
	}
	select {
	case <-e.r.Context().Done():
	case <-time.After(patience):
		t.Error("the product works on")
	}
}

// A client that asks and does not read ends its stream by that, and holds no more
// than what lies in buffers on the way.
func TestClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	s, p := theHarsh(t)
	finish := s.bystander(t)
	defer finish()
	conn, err := net.Dial("tcp", s.front())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /v1/harsh/idle/deaf HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n", s.dev["SLUICE_API_KEY"])
	e := p.next(t, "deaf")
	defer close(e.done)
	written := make(chan int64, 1)
	go func() {
		n, _ := io.Copy(e.w, io.LimitReader(zeros{}, largeBody)) // it ends when the edge has had enough
		written <- n
	}()
	select {
	case n := <-written:
		if n > largeBody/4 {
			t.Errorf("%d bytes were taken for a client that reads none", n)
		}
	case <-time.After(patience):
		t.Error("the product is kept waiting")
	}
}

// largeBody is more than Envoy may hold.
const largeBody = 256 << 20

// Large bodies pass in both directions without Envoy growing.
func TestLargeBodiesAreNotHeld(t *testing.T) {
	s, p := theHarsh(t)
	envoy := s.envoy(t)
	before := peakMemory(t, envoy)
	e, answered := s.begin(t, p, t.Context(), "/v1/harsh/stream/large", io.LimitReader(zeros{}, largeBody))
	n, err := io.Copy(io.Discard, e.r.Body)
	if n != largeBody || err != nil {
		t.Fatalf("the product got %d bytes: %v", n, err)
	}
	go func() {
		defer close(e.done)
		_, _ = io.Copy(e.w, io.LimitReader(zeros{}, largeBody)) // the client tells how much came
	}()
	res := headersOf(t, answered)
	defer res.Body.Close()
	if n, err = io.Copy(io.Discard, res.Body); n != largeBody || err != nil {
		t.Fatalf("the client got %d bytes: %v", n, err)
	}
	grown := peakMemory(t, envoy) - before
	t.Logf("Envoy grew by %d KiB at most while %d MiB passed in each direction", grown>>10, largeBody>>20)
	if grown > 32<<20 {
		t.Errorf("Envoy grew by %d bytes", grown)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// envoy returns the process id of the stack's only Envoy.
func (s *stack) envoy(t testing.TB) int {
	t.Helper()
	for _, p := range harness.Children(s.child(t, "edge")) {
		return p.PID
	}
	t.Fatal("the edge has no Envoy")
	return 0
}
