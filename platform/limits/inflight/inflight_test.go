package inflight

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// bed is a server whose handlers read a body and keep it until they are told.
type bed struct {
	pool *Pool
	url  string
	kept chan struct{} // one for each body that was read to its end
	end  chan struct{} // closed: they answer
}

func newBed(t *testing.T, c Config) *bed {
	t.Helper()
	c.Refuse = func(w http.ResponseWriter, _ *http.Request, why error) {
		status := http.StatusServiceUnavailable
		switch {
		case errors.Is(why, ErrShare):
			status = http.StatusTooManyRequests
		case errors.Is(why, ErrTooLarge):
			status = http.StatusRequestEntityTooLarge
		}
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "refused")
	}
	b := &bed{pool: New(c), kept: make(chan struct{}, 64), end: make(chan struct{})}
	s := httptest.NewServer(b.pool.Wrap(http.HandlerFunc(b.serve), func(r *http.Request) string { return r.Header.Get("From") }))
	t.Cleanup(s.Close)
	b.url = s.URL
	return b
}

func (b *bed) serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/stream":
		Stream(r, 10)
		r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
	case "/silent":
		_, _ = io.ReadAll(r.Body)
		return
	case "/early":
		w.WriteHeader(http.StatusAccepted)
		_ = http.NewResponseController(w).Flush()
		_, err := io.ReadAll(r.Body)
		fmt.Fprint(w, err == nil)
		return
	case "/panic":
		_, _ = io.ReadAll(r.Body)
		panic(http.ErrAbortHandler)
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil { // as handlers answer a body that breaks off
		w.Header().Set("Content-Length", "3")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "bad")
		return
	}
	if r.URL.Path == "/keep" {
		b.kept <- struct{}{}
		<-b.end
	}
	fmt.Fprint(w, len(raw))
}

// post sends n bytes, and says how many beforehand if told is true.
func (b *bed) post(t *testing.T, from, path string, n int, told bool) (int, string) {
	t.Helper()
	var body io.Reader = strings.NewReader(strings.Repeat("x", n))
	if !told {
		body = io.MultiReader(body)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("From", from)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	if res.StatusCode >= 400 && res.Header.Get("Retry-After") == "" {
		t.Errorf("%d without Retry-After", res.StatusCode)
	}
	return res.StatusCode, string(text)
}

func (b *bed) want(t *testing.T, from, path string, n int, status int, text string) {
	t.Helper()
	for _, told := range []bool{true, false} {
		if got, answer := b.post(t, from, path, n, told); got != status || answer != text {
			t.Errorf("%s, %s of %d bytes: %d %q, want %d %q", from, path, n, got, answer, status, text)
		}
	}
}

// A body counts until its request is answered. Others have what one caller may not
// take, until all is taken; then it is free again.
func TestOneCallerCannotTakeAll(t *testing.T) {
	t.Parallel()
	b := newBed(t, Config{Max: 100, Share: 40})
	var kept sync.WaitGroup
	keep := func(from string, n int) {
		kept.Go(func() { b.want1(t, from, n) })
		<-b.kept
	}
	keep("a", 20)
	keep("a", 15)
	b.want(t, "a", "/", 6, http.StatusTooManyRequests, "refused")
	b.want(t, "a", "/", 5, 200, "5")
	keep("b", 40)
	b.want(t, "c", "/", 26, http.StatusServiceUnavailable, "refused")
	keep("c", 25)
	b.want(t, "d", "/", 1, http.StatusServiceUnavailable, "refused")
	b.want(t, "d", "/", 0, 200, "0")
	if got := b.pool.Bytes(); got != 100 {
		t.Errorf("%d bytes are in flight, want 100", got)
	}
	close(b.end)
	kept.Wait()
	if got := b.pool.Bytes(); got != 0 || len(b.pool.callers) != 0 {
		t.Errorf("%d bytes of %v are left", got, b.pool.callers)
	}
	b.want(t, "d", "/", 40, 200, "40")
	if got := b.pool.Refused(); got != 6 {
		t.Errorf("%d bodies were refused, want 6", got)
	}
}

func (b *bed) want1(t *testing.T, from string, n int) {
	t.Helper()
	if got, answer := b.post(t, from, "/keep", n, true); got != 200 || answer != fmt.Sprint(n) {
		t.Errorf("%s, %d bytes: %d %q", from, n, got, answer)
	}
}

// What a handler answers to a body that was refused is replaced, whatever that is.
func TestRefusals(t *testing.T) {
	t.Parallel()
	b := newBed(t, Config{Max: 100, Share: 40})
	b.want(t, "a", "/", 41, http.StatusRequestEntityTooLarge, "refused")
	b.want(t, "a", "/silent", 41, http.StatusRequestEntityTooLarge, "refused")
	b.want(t, "a", "/stream", 5000, 200, "5000")
	b.want(t, "a", "/early", 41, http.StatusAccepted, "false") // it has begun to answer
	if status, text := b.post(t, "a", "/panic", 30, true); status != 0 {
		t.Errorf("a handler that panics answers %d %q", status, text)
	}
	b.want(t, "a", "/", 40, 200, "40")
	if got := b.pool.Bytes(); got != 0 {
		t.Errorf("%d bytes are left", got)
	}
}

// A body that is announced as too large is refused before any of it is kept, and one
// that a handler passes on is not.
func TestAnnouncedTooLarge(t *testing.T) {
	t.Parallel()
	p := New(Config{Max: 100, Share: 40})
	b := &body{ReadCloser: io.NopCloser(strings.NewReader("x")), pool: p, length: 41}
	if n, err := b.Read(make([]byte, 1)); n != 0 || !errors.Is(err, ErrTooLarge) {
		t.Error(n, err)
	}
	b = &body{ReadCloser: io.NopCloser(strings.NewReader("x")), pool: p, length: 41, keeps: 1}
	if n, err := b.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Error(n, err)
	}
	p.release(b)
	if n, err := b.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) || p.Bytes() != 0 {
		t.Error("read behind the answer: ", n, err, p.Bytes())
	}
}

func TestDefaultShare(t *testing.T) {
	t.Parallel()
	for most, want := range map[int64]int64{1 << 30: 256 << 20, 32 << 20: 16 << 20, 1 << 20: 1 << 20} {
		if got := New(Config{Max: most}).cfg.Share; got != want {
			t.Errorf("of %d: %d, want %d", most, got, want)
		}
	}
}

// Who measures requests from outside still learns the route, and the writer can what
// it could.
func TestWhatIsAroundSeesThrough(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /a/{id}", func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		_, err := io.ReadAll(r.Body)
		if err := errors.Join(err, c.EnableFullDuplex(), c.Flush()); err != nil {
			t.Error(err)
		}
	})
	h := New(Config{Max: 1}).Wrap(mux, func(*http.Request) string { return "" })
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.ServeHTTP(w, r); r.Pattern != "POST /a/{id}" {
			t.Errorf("the pattern is %q", r.Pattern)
		}
	}))
	defer s.Close()
	res, err := http.Post(s.URL+"/a/1", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
}
