package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// harsh is a second shared stack, with a product that does what products should
// not: tests of what the edge bears use it. They must not break it.
var harsh struct {
	sync.Once
	s       *stack
	product *product
}

// harshRoutes lead to the product. Each asks for a key, but for open.
const harshRoutes = `
  - {name: harsh.open, path: /v1/harsh/open, auth: [none], product: harsh}
  - {name: harsh.echo, path: /v1/harsh/echo, auth: [key], scope: "streams:read", product: harsh, timeout: 5s}
  - {name: harsh.bare, path: /v1/harsh/bare, auth: [key], scope: "streams:read", product: harsh, forward_credentials: true}
  - {name: harsh.slow, path: /v1/harsh/slow, auth: [key], product: harsh, timeout: 300ms}
  - {name: harsh.bad, path: "/v1/harsh/bad/{how}", auth: [key], product: harsh}
  - {name: harsh.capped, methods: [POST], path: /v1/harsh/capped, auth: [key], product: harsh, chat_caps: true, body_limit: 4096, timeout: 5s}
  - {name: harsh.idle, path: "/v1/harsh/idle/{id}", auth: [key], product: harsh, streaming: true, timeout: 2s}
  - {name: harsh.stream, path: "/v1/harsh/stream/{id}", auth: [key], product: harsh, streaming: true}
`

// theHarsh returns the stack, started by the first test that asks, and the
// product behind it.
func theHarsh(t testing.TB) (*stack, *product) {
	t.Helper()
	harsh.Do(func() {
		p := newProduct()
		s := start(t, nil)
		s.configure(t, "", "\nproducts:\n", "\nproducts:\n  - {name: harsh, retries: 0, upstreams: [{address: \""+p.Listener.Addr().String()+"\"}]}\n",
			"\nroutes:\n", "\nroutes:\n"+harshRoutes)
		eventually(t, "the product's routes are there", func() error {
			r, err := try(http.MethodGet, s.url("/v1/harsh/echo"), s.dev["SLUICE_API_KEY"], nil)
			return unless(err, r, http.StatusOK)
		})
		harsh.s, harsh.product = s, p
	})
	if harsh.s == nil {
		t.Fatal("the stack did not start")
	}
	return harsh.s, harsh.product
}

// product answers by path. A test that opens a stream meets it on the channel of
// the stream's id.
type product struct {
	*httptest.Server
	mu      sync.Mutex
	streams map[string]chan *exchange
}

// exchange is a request that the product has begun to answer.
type exchange struct {
	w    http.ResponseWriter
	r    *http.Request
	done chan struct{} // closed by the test when the product may return
}

func newProduct() *product {
	p := &product{streams: map[string]chan *exchange{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/harsh/open", echo)
	mux.HandleFunc("/v1/harsh/echo", echo)
	mux.HandleFunc("/v1/harsh/bare", echo)
	mux.HandleFunc("/v1/harsh/capped", echo)
	mux.HandleFunc("/v1/harsh/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/v1/harsh/bad/{how}", misbehave)
	mux.HandleFunc("/v1/harsh/idle/{id}", p.meet)
	mux.HandleFunc("/v1/harsh/stream/{id}", p.meet)
	p.Server = httptest.NewServer(mux)
	return p
}

// meet hands a request to the test that waits for it.
func (p *product) meet(w http.ResponseWriter, r *http.Request) {
	e := &exchange{w, r, make(chan struct{})}
	p.stream(r.PathValue("id")) <- e
	<-e.done
}

// say sends text to the client at once.
func (e *exchange) say(t testing.TB, text string) {
	t.Helper()
	if _, err := io.WriteString(e.w, text); err != nil {
		t.Fatal(err)
	}
	if err := http.NewResponseController(e.w).Flush(); err != nil {
		t.Fatal(err)
	}
}

// stream is where the requests of a stream's id arrive.
func (p *product) stream(id string) chan *exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.streams[id] == nil {
		p.streams[id] = make(chan *exchange, 1)
	}
	return p.streams[id]
}

// next waits for the request of a stream.
func (p *product) next(t testing.TB, id string) *exchange {
	t.Helper()
	select {
	case e := <-p.stream(id):
		return e
	case <-time.After(patience):
		t.Fatal("the product was not asked for stream " + id)
		return nil
	}
}

// seen is what the product saw of a request.
type seen struct {
	Host    string
	Headers http.Header
	Length  int64
}

func echo(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(seen{r.Host, r.Header, n})
}

// misbehave breaks off in one of the ways in which servers do.
func misbehave(w http.ResponseWriter, r *http.Request) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	text := map[string]string{
		"garbage":       "this is no HTTP\r\n\r\n",
		"two-lengths":   "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabc",
		"both-lengths":  "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"huge-headers":  "HTTP/1.1 200 OK\r\nX-Big: " + strings.Repeat("a", 200<<10) + "\r\nContent-Length: 0\r\n\r\n",
		"no-answer":     "",
		"half-a-header": "HTTP/1.1 200 OK\r\nContent-Len",
	}[r.PathValue("how")]
	_, _ = rw.WriteString(text)
	_ = rw.Flush()
}

// wholly sends text, reads an answer, says that it is done, and reads more
// answers until the connection ends.
func wholly(addr, text string) (answers []response, err error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, text); err != nil && !closed(err) {
		return nil, err
	}
	for from := bufio.NewReader(conn); ; {
		r, err := readRaw(from, text)
		if err != nil {
			return answers, err
		}
		answers = append(answers, r)
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			return answers, err
		}
	}
}

// rawly sends text on a connection of its own and reads one answer. An answer
// that never comes because the connection was closed is io.EOF or a reset.
func rawly(addr, text string, wait time.Duration) (response, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return response{}, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(wait)); err != nil {
		return response{}, err
	}
	// A peer that refuses early may close while there is more to write; what it
	// answered can be read all the same.
	asked := time.Now()
	_, writeErr := io.WriteString(conn, text)
	r, err := readRaw(bufio.NewReader(conn), text)
	r.asked = asked
	if err != nil {
		err = errors.Join(err, writeErr)
	}
	return r, err
}

func readRaw(from *bufio.Reader, request string) (response, error) {
	method, _, _ := strings.Cut(request, " ")
	req, err := http.NewRequest(method, "/raw", nil)
	if err != nil {
		req, err = http.NewRequest(http.MethodGet, "/raw", nil)
	}
	if err != nil {
		return response{}, err
	}
	res, err := http.ReadResponse(from, req)
	if err != nil {
		return response{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return response{Response: res, body: string(b)}, err
}

// bystander is a client that does what clients should. It runs until the
// function that it returns is called, which fails the test if a request of it
// failed meanwhile or none was made.
func (s *stack) bystander(t testing.TB) (finish func()) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		n, failures := load(stop, 1, func() error { return s.answers(s.dev["SLUICE_API_KEY"], http.StatusOK) })
		if len(failures) > 0 {
			done <- fmt.Errorf("%d of %d requests failed, first: %s", len(failures), n, failures[0])
			return
		}
		if n == 0 {
			done <- errors.New("no request was made")
			return
		}
		done <- nil
	}()
	return func() {
		t.Helper()
		close(stop)
		if err := <-done; err != nil {
			t.Errorf("a client beside: %v", err)
		}
	}
}

// front is where the gateway of the only edge listens.
func (s *stack) front() string { return s.env["SLUICE_GATEWAY_ADDR"] }
