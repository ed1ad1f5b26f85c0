package idempotency

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/limits/fairshare"
)

// stream sends a request, whose body has been read, to a handler that streams. client is where the
// answer goes.
func (b *bundle) stream(ctx context.Context, client http.ResponseWriter, h http.HandlerFunc, key, body string) {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/chat/completions", nil)
	if key != "" {
		r.Header.Set(Header, key)
	}
	r = r.WithContext(identity.With(r.Context(), identity.Caller{Account: "A"}))
	if err := b.m.Stream(client, r, []byte(body), h); err != nil {
		b.m.Respond.Error(client, r, err)
	}
}

// leaving is a client who leaves after so many writes.
type leaving struct {
	http.ResponseWriter
	writes int
	leave  func()
}

func (l *leaving) Write(p []byte) (int, error) {
	if l.writes--; l.writes < 0 {
		l.leave()
		return 0, errors.New("gone")
	}
	return l.ResponseWriter.Write(p)
}

func (l *leaving) Unwrap() http.ResponseWriter { return l.ResponseWriter }

// slow writes three chunks, and between them waits for its context only.
func slow(ids *[]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		*ids = append(*ids, ID(r.Context()))
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			if r.Context().Err() != nil {
				return
			}
			if _, err := fmt.Fprintf(w, "%d;", i); err != nil {
				return
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				return
			}
		}
	}
}

func TestAStreamIsMadeOnceAlsoForAClientWhoLeaves(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var ids []string
	ctx, leave := context.WithCancel(t.Context())
	first := httptest.NewRecorder()
	b.stream(ctx, &leaving{first, 1, leave}, slow(&ids), "k", "body")
	if ctx.Err() == nil || first.Body.String() != "0;" {
		t.Fatalf("the client did not leave in between: %s", first.Body)
	}
	again := httptest.NewRecorder()
	b.stream(t.Context(), again, slow(&ids), "k", "body")
	if again.Body.String() != "0;1;2;" || again.Header().Get(ReplayedHeader) != "true" || again.Header().Get("Content-Type") != "text/event-stream" || len(ids) != 1 {
		t.Errorf("the repetition: %v %s; made %d times", again.Header(), again.Body, len(ids))
	}
	other := httptest.NewRecorder()
	b.stream(t.Context(), other, slow(&ids), "k", "another body")
	if other.Code != http.StatusUnprocessableEntity || len(ids) != 1 || b.claims(t) != 0 {
		t.Errorf("another request: %d; %d claims", other.Code, b.claims(t))
	}
	plain := httptest.NewRecorder()
	b.stream(t.Context(), plain, slow(&ids), "", "body")
	b.stream(t.Context(), plain, slow(&ids), "", "body")
	if len(ids) != 3 || ids[1] != "" {
		t.Errorf("without a key: %v", ids)
	}
}

func TestARepetitionOfAStreamUnderWayWaits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	begun, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	first := httptest.NewRecorder()
	go func() {
		defer close(ended)
		b.stream(t.Context(), first, func(w http.ResponseWriter, _ *http.Request) {
			close(begun)
			<-end
			_, _ = io.WriteString(w, "done")
		}, "k", "body")
	}()
	<-begun
	if n := b.pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("%d connections are held by a stream", n)
	}
	early := httptest.NewRecorder()
	b.stream(t.Context(), early, b.add, "k", "body")
	if early.Code != http.StatusConflict || early.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s", early.Code, early.Body)
	}
	close(end)
	<-ended
	late := httptest.NewRecorder()
	b.stream(t.Context(), late, b.add, "k", "body")
	if late.Body.String() != "done" {
		t.Errorf("%d %s", late.Code, late.Body)
	}
}

// Of a process that dies the claim stays, and lapses; the repetition has the ID of the first.
func TestAfterACrashAStreamIsMadeAgainUnderTheSameID(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var ids []string
	func() {
		defer func() { _ = recover() }()
		b.stream(t.Context(), httptest.NewRecorder(), func(_ http.ResponseWriter, r *http.Request) {
			ids = append(ids, ID(r.Context()))
			if _, err := b.pool.Exec(t.Context(), `UPDATE idempotent_claims SET token = 'of a process that is gone'`); err != nil {
				t.Error(err)
			}
			panic("it dies")
		}, "k", "body")
	}()
	w := httptest.NewRecorder()
	b.stream(t.Context(), w, slow(&ids), "k", "body")
	if w.Code != http.StatusConflict {
		t.Fatalf("before the claim lapses: %d", w.Code)
	}
	b.now = b.now.Add(ClaimLife)
	w = httptest.NewRecorder()
	b.stream(t.Context(), w, slow(&ids), "k", "body")
	if w.Body.String() != "0;1;2;" || len(ids) != 2 || ids[0] == "" || ids[0] != ids[1] {
		t.Errorf("%d %s, %v", w.Code, w.Body, ids)
	}
}

func TestAnswersOfStreamsThatAreKept(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, c := range map[string]struct {
		status, size int
		want         int // of the repetition
		runs         int
	}{
		"failed":   {503, 1, 503, 2},
		"refused":  {404, 1, 404, 1},
		"long":     {200, maxStream, 200, 1},
		"too long": {200, maxStream + 1, 400, 1},
	} {
		runs := 0
		h := func(w http.ResponseWriter, _ *http.Request) {
			runs++
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, strings.Repeat("x", c.size))
		}
		first, again := httptest.NewRecorder(), httptest.NewRecorder()
		b.stream(t.Context(), first, h, name, "body")
		b.stream(t.Context(), again, h, name, "body")
		if first.Code != c.status || first.Body.Len() != c.size || again.Code != c.want || runs != c.runs {
			t.Errorf("%s: %d of %d bytes, then %d; ran %d times", name, first.Code, first.Body.Len(), again.Code, runs)
		}
	}
}

// An account has so many streams under way and no more, and others go on.
func TestAnAccountHasItsShareOfStreams(t *testing.T) {
	t.Parallel()
	b := setup(t)
	begun, end := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	for i := range maxCalls {
		all.Go(func() {
			b.stream(t.Context(), httptest.NewRecorder(), func(http.ResponseWriter, *http.Request) { begun <- struct{}{}; <-end }, fmt.Sprint(i), "body")
		})
	}
	for range maxCalls {
		<-begun
	}
	w := httptest.NewRecorder()
	b.stream(t.Context(), w, slow(new([]string)), "one more", "body")
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if leave, ok := b.m.calls.TryEnter("B"); !ok {
		t.Error("nothing is left for another account")
	} else {
		leave()
	}
	close(end)
	all.Wait()
	w = httptest.NewRecorder()
	if b.stream(t.Context(), w, slow(new([]string)), "one more", "body"); w.Body.String() != "0;1;2;" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// What is kept of answers while they are made is bounded for all of an account's requests: an answer
// beyond is sent, and not made again.
func TestAnswersUnderWayAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.m.kept = fairshare.New(fairshare.Config{Places: 3, Share: 2})
	runs := 0
	ask := func(key string, size int) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		b.stream(t.Context(), w, func(w http.ResponseWriter, _ *http.Request) {
			runs++
			for range size {
				_, _ = w.Write(make([]byte, keptPlace))
			}
		}, key, "body")
		return w
	}
	for _, c := range []struct{ size, again int }{{3, http.StatusBadRequest}, {2, http.StatusOK}, {3, http.StatusBadRequest}} {
		key := fmt.Sprint(runs)
		first, again := ask(key, c.size), ask(key, c.size)
		if first.Code != http.StatusOK || first.Body.Len() != c.size*keptPlace || again.Code != c.again {
			t.Errorf("%d places: %d of %d bytes, then %d", c.size, first.Code, first.Body.Len(), again.Code)
		}
	}
	if runs != 3 {
		t.Errorf("%d runs", runs)
	}
}
