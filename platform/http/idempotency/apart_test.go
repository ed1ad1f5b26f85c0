package idempotency

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/platform/storage/postgres"
)

// silent is a server that answers nobody before speak is closed.
type silent struct {
	*httptest.Server
	asked chan struct{}
	speak chan struct{}
}

func newSilent(t *testing.T) *silent {
	t.Helper()
	s := &silent{asked: make(chan struct{}, 100), speak: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		s.asked <- struct{}{}
		<-s.speak
	}))
	t.Cleanup(s.Close)
	return s
}

// asking is a handler that asks s by the guarded client, and then adds what add adds.
func (b *bundle) asking(s *silent) http.HandlerFunc {
	client := outbound.New(outbound.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Timeout: time.Minute})
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := client.Do(r.Context(), outbound.Request{URL: s.URL}); err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		b.add(w, r)
	}
}

// As many requests of one account as there are places wait for a server that says
// nothing: they hold no connection and no place, so that others go on at once.
func TestASilentServerStopsNobodyElse(t *testing.T) {
	t.Parallel()
	b, server := setup(t), newSilent(t)
	ask := b.asking(server)
	ended := make(chan *httptest.ResponseRecorder)
	for i := range 8 {
		go func() {
			ended <- b.call(t.Context(), ask, options{key: fmt.Sprint("k", i), body: fmt.Sprint("a", i), account: "A"})
		}()
	}
	for range 8 {
		<-server.asked
	}
	if n := b.pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("%d connections are held", n)
	}
	for _, account := range []string{"A", "B"} {
		if w := b.call(t.Context(), b.add, options{key: "other", body: "of " + account, account: account}); w.Code != 201 {
			t.Errorf("%s: %d %s", account, w.Code, w.Body)
		}
	}
	if w := b.call(t.Context(), ask, options{key: "k0", body: "a0", account: "A"}); w.Code != 409 || w.Header().Get("Retry-After") != "1" {
		t.Errorf("a repetition meanwhile: %d %s", w.Code, w.Body)
	}
	if w := b.call(t.Context(), ask, options{key: "k0", body: "else", account: "A"}); w.Code != 422 {
		t.Errorf("another request with the key: %d %s", w.Code, w.Body)
	}
	close(server.speak)
	for range 8 {
		if w := <-ended; w.Code != 201 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if w := b.call(t.Context(), ask, options{key: "k0", body: "a0", account: "A"}); w.Code != 201 || w.Header().Get(ReplayedHeader) != "true" {
		t.Errorf("a repetition afterwards: %d %s", w.Code, w.Body)
	}
	if n := b.claims(t); n != 0 || b.effects(t) != 10 {
		t.Errorf("%d claims, %d effects", n, b.effects(t))
	}
}

func (b *bundle) claims(t *testing.T) (n int) {
	t.Helper()
	if err := b.pool.QueryRow(t.Context(), `SELECT count(*) FROM idempotent_claims`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A request whose claim has lapsed counts as lost, as after a crash: a repetition
// runs. The first, should it live after all, takes no effect.
func TestAClaimThatLapsedIsTakenOver(t *testing.T) {
	t.Parallel()
	b, server := setup(t), newSilent(t)
	o := options{key: "k", body: "a", account: "A"}
	first := make(chan *httptest.ResponseRecorder)
	go func() { first <- b.call(t.Context(), b.asking(server), o) }()
	<-server.asked
	if w := b.call(t.Context(), b.add, o); w.Code != 409 {
		t.Errorf("while it is young: %d %s", w.Code, w.Body)
	}
	later := New(b.m.Config)
	later.Now = func() time.Time { return start.Add(ClaimLife) }
	b.m = later
	again := b.call(t.Context(), b.add, o)
	if again.Code != 201 || b.effects(t) != 1 {
		t.Fatalf("the repetition: %d %s", again.Code, again.Body)
	}
	close(server.speak)
	if w := <-first; w.Code != 409 || b.effects(t) != 1 {
		t.Errorf("the first: %d %s, %d effects", w.Code, w.Body, b.effects(t))
	}
	if w := b.call(t.Context(), b.add, o); w.Body.String() != again.Body.String() || w.Header().Get(ReplayedHeader) != "true" {
		t.Errorf("afterwards: %d %s", w.Code, w.Body)
	}
}

// What follows a call commits with the answer, or is undone with it.
func TestWhatFollowsACallIsOneWithTheAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	out := func(r *http.Request) { _ = postgres.Apart(r.Context(), func(context.Context) {}) }
	o := options{key: "k", body: "a", account: "A"}
	lost := b.call(t.Context(), func(w http.ResponseWriter, r *http.Request) {
		out(r)
		b.add(w, r)
		r.Context().Value(contextKey{}).(*running).tx.Conn().Close(r.Context())
	}, o)
	if lost.Code < 500 || b.effects(t) != 0 || b.claims(t) != 0 {
		t.Fatalf("%d, %d effects, %d claims", lost.Code, b.effects(t), b.claims(t))
	}
	failed := b.call(t.Context(), func(w http.ResponseWriter, r *http.Request) {
		out(r)
		b.add(httptest.NewRecorder(), r)
		out(r)
		w.WriteHeader(http.StatusServiceUnavailable)
	}, options{key: "l", body: "b", account: "A"})
	if failed.Code != 503 || b.effects(t) != 1 || b.claims(t) != 0 {
		t.Fatalf("what came before a call stays: %d, %d effects, %d claims", failed.Code, b.effects(t), b.claims(t))
	}
}

// An account has so many requests that wait for others; more are refused, and then
// from memory for a second, without a look into the database.
func TestCallsOfAnAccountAreBounded(t *testing.T) {
	t.Parallel()
	b, server := setup(t), newSilent(t)
	ask := b.asking(server)
	ended := make(chan *httptest.ResponseRecorder)
	for i := range maxCalls {
		go func() {
			ended <- b.call(t.Context(), ask, options{key: fmt.Sprint("k", i), account: "A"})
		}()
	}
	for range maxCalls {
		<-server.asked
	}
	if w := b.call(t.Context(), ask, options{key: "more", account: "A"}); w.Code != 429 || w.Header().Get("Retry-After") != "5" {
		t.Errorf("one too many: %d %s", w.Code, w.Body)
	}
	ran := false
	if w := b.call(t.Context(), func(http.ResponseWriter, *http.Request) { ran = true }, options{key: "again", account: "A"}); w.Code != 429 || ran {
		t.Errorf("at once again: %d %s, ran: %t", w.Code, w.Body, ran)
	}
	b.now = b.now.Add(refusedFor)
	if w := b.call(t.Context(), b.add, options{key: "later", account: "A"}); w.Code != 201 {
		t.Errorf("what calls nobody, a second later: %d %s", w.Code, w.Body)
	}
	if w := b.call(t.Context(), b.add, options{key: "k", account: "B"}); w.Code != 201 {
		t.Errorf("another account: %d %s", w.Code, w.Body)
	}
	close(server.speak)
	for range maxCalls {
		if w := <-ended; w.Code != 201 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
}

// A request that has called once may call again, however many have come since.
func TestASecondCallIsNotRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.call(t.Context(), func(w http.ResponseWriter, r *http.Request) {
		first := postgres.Apart(r.Context(), func(context.Context) {})
		for range maxCalls - 1 {
			if _, ok := b.m.calls.TryEnter("A"); !ok {
				t.Error("no place for another request")
			}
		}
		if _, ok := b.m.calls.TryEnter("A"); ok {
			t.Error("the place is not kept")
		}
		if second := postgres.Apart(r.Context(), func(context.Context) {}); first != nil || second != nil {
			t.Error(first, second)
		}
		b.add(w, r)
	}, options{key: "k", body: "a", account: "A"})
	if w.Code != 201 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if _, ok := b.m.calls.TryEnter("A"); !ok {
		t.Error("the place is not given back")
	}
}

func TestNoCallWithinATransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	called := false
	w := b.call(t.Context(), func(w http.ResponseWriter, r *http.Request) {
		_ = postgres.InTx(r.Context(), b.db, func(pgx.Tx) error {
			return postgres.Apart(r.Context(), func(context.Context) { called = true })
		})
	}, options{key: "k", body: "a", account: "A"})
	if w.Code != 500 || called {
		t.Errorf("%d, called: %t", w.Code, called)
	}
	_ = postgres.Apart(t.Context(), func(context.Context) { called = true })
	if !called {
		t.Error("without a request there is nothing to give back")
	}
}

// An account has a quarter of the places; what is more waits, up to a number.
func TestAnAccountHasItsShareOfThePlaces(t *testing.T) {
	t.Parallel()
	b := setup(t)
	leave := make(chan struct{})
	codes := make(chan int, maxWaiting+3) // two run
	for i := range cap(codes) {
		go func() {
			codes <- b.call(t.Context(), func(w http.ResponseWriter, r *http.Request) { <-leave }, options{key: fmt.Sprint(i), account: "A"}).Code
		}()
	}
	if code := <-codes; code != 429 {
		t.Errorf("one too many: %d", code)
	}
	if w := b.call(t.Context(), b.add, options{key: "k", body: "b", account: "B"}); w.Code != 201 {
		t.Errorf("another account: %d %s", w.Code, w.Body)
	}
	close(leave)
	for range maxWaiting + 2 {
		if code := <-codes; code != 200 {
			t.Errorf("one that waited: %d", code)
		}
	}
}
