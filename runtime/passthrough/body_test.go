package passthrough

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A gateway that answers before it has read the body leaves the connection in
// order: the next request on it is answered too, or the client is told that it
// is closed, and the server never reads in two places at once.
func TestAnswerBeforeTheBodyIsRead(t *testing.T) {
	t.Parallel()
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		_, _ = fmt.Fprint(w, "enough")
	}))
	defer gateway.Close()
	p, err := New(Config{Gateway: gateway.URL})
	if err != nil {
		t.Fatal(err)
	}
	var panics strings.Builder
	server := httptest.NewUnstartedServer(p)
	server.Config.ErrorLog = log.New(&panics, "", 0)
	server.Start()
	for _, length := range []int{10, 1 << 20} { // all of it sent, and most of it never sent
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(conn, "POST /v1/mux HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n0123456789", length)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(res.Body); err != nil || string(b) != "enough" {
			t.Errorf("length %d: %q %v", length, b, err)
		}
		res.Body.Close()
		conn.Close()
	}
	server.Close() // waits for the connections
	if panics.Len() > 0 {
		t.Fatal(panics.String())
	}
}

func TestSettledBodyIsNotRead(t *testing.T) {
	t.Parallel()
	b := newBody(io.NopCloser(strings.NewReader("more")))
	b.finish(http.NewResponseController(httptest.NewRecorder()))
	if n, err := b.Read(make([]byte, 4)); n != 0 || !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Fatal(n, err)
	}
}
