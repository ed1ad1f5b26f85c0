package idempotency

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

type bundle struct {
	pool *pgxpool.Pool
	db   DB
	m    *Middleware
	now  time.Time
}

// setup has a table that handlers add to.
func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{pool: pgtest.Pool(t), now: start}
	if _, err := b.pool.Exec(t.Context(), `CREATE TABLE effects (n bigint GENERATED ALWAYS AS IDENTITY, what text UNIQUE)`); err != nil {
		t.Fatal(err)
	}
	b.db = DB{b.pool}
	b.m = New(Config{DB: b.pool, Now: func() time.Time { return b.now }, Secret: [32]byte{1}, Concurrent: 8,
		Respond: httpapi.Adapter{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}})
	return b
}

// add is a handler with an effect: it stores its body and answers with a number
// that is never the same twice.
func (b *bundle) add(w http.ResponseWriter, r *http.Request) {
	what, _ := io.ReadAll(r.Body)
	var n int64
	err := postgres.InTx(r.Context(), b.db, func(tx pgx.Tx) error {
		return tx.QueryRow(r.Context(), `INSERT INTO effects (what) VALUES (nullif($1, '')) RETURNING n`, string(what)).Scan(&n)
	})
	if err != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	}
	w.Header().Set("Location", fmt.Sprint("/effects/", n))
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "secret-%d", n)
}

type options struct {
	method, path, key, body, account, scope string
}

func (b *bundle) call(ctx context.Context, h http.HandlerFunc, o options) *httptest.ResponseRecorder {
	if o.method == "" {
		o.method = http.MethodPost
	}
	r := httptest.NewRequestWithContext(ctx, o.method, "/v1/things"+o.path, strings.NewReader(o.body))
	if o.key != "" {
		r.Header.Set(Header, o.key)
	}
	if o.account != "" {
		r = r.WithContext(identity.With(r.Context(), identity.Caller{Account: o.account, Scopes: []string{o.scope}}))
	}
	w := httptest.NewRecorder()
	b.m.Wrap(h).ServeHTTP(w, r)
	return w
}

func (b *bundle) effects(t *testing.T) (n int) {
	t.Helper()
	if err := b.pool.QueryRow(t.Context(), `SELECT count(*) FROM effects`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestARepetitionGetsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := options{key: "k1", body: "a", account: "A"}
	first, again := b.call(t.Context(), b.add, o), b.call(t.Context(), b.add, o)
	if first.Code != 201 || again.Code != 201 || again.Body.String() != first.Body.String() ||
		again.Header().Get("Location") != first.Header().Get("Location") || b.effects(t) != 1 {
		t.Fatalf("%d %s, then %d %s; %d effects", first.Code, first.Body, again.Code, again.Body, b.effects(t))
	}
	if first.Header().Get(ReplayedHeader) != "" || again.Header().Get(ReplayedHeader) != "true" {
		t.Error("only the repetition says that it is one")
	}
	var stored []byte
	if err := b.pool.QueryRow(t.Context(), `SELECT answer FROM idempotent_answers`).Scan(&stored); err != nil || bytes.Contains(stored, first.Body.Bytes()) {
		t.Errorf("the answer is stored as it is: %v", err)
	}
}

func TestWhatCountsAsARepetition(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := options{key: "k1", body: "a", account: "A", scope: "s"}
	if w := b.call(t.Context(), b.add, first); w.Code != 201 {
		t.Fatal(w.Code)
	}
	for name, c := range map[string]struct {
		change  func(*options)
		want    int
		replays bool
	}{
		"the same":         {func(*options) {}, 201, true},
		"another body":     {func(o *options) { o.body = "b" }, 422, false},
		"another query":    {func(o *options) { o.path = "?x=1" }, 422, false},
		"other scopes":     {func(o *options) { o.scope = "less" }, 422, false},
		"another key":      {func(o *options) { o.key = "k2"; o.body = "c" }, 201, false},
		"another account":  {func(o *options) { o.account = "B"; o.body = "d" }, 201, false},
		"another route":    {func(o *options) { o.path = "/x"; o.body = "e" }, 201, false},
		"a GET":            {func(o *options) { o.method = "GET"; o.body = "f" }, 201, false},
		"no key":           {func(o *options) { o.key = ""; o.body = "g" }, 201, false},
		"nobody":           {func(o *options) { o.account = ""; o.body = "h" }, 201, false},
		"a key too long":   {func(o *options) { o.key = strings.Repeat("k", 256) }, 400, false},
		"a key of é":       {func(o *options) { o.key = "é" }, 400, false},
		"a body too large": {func(o *options) { o.body = strings.Repeat("x", httpapi.DefaultBodyLimit+1) }, 413, false},
	} {
		o := first
		c.change(&o)
		if w := b.call(t.Context(), b.add, o); w.Code != c.want || (w.Header().Get(ReplayedHeader) == "true") != c.replays {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, c.want)
		}
	}
}

// Of 100 at once one takes effect; the others are told to wait, or get its answer.
func TestManyAtOnceTakeEffectOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var wg sync.WaitGroup
	answers := make(chan *httptest.ResponseRecorder, 100)
	for range cap(answers) {
		wg.Go(func() {
			answers <- b.call(t.Context(), b.add, options{key: "k", body: "a", account: "A"})
		})
	}
	wg.Wait()
	close(answers)
	bodies := map[string]int{}
	for w := range answers {
		switch {
		case w.Code == 201:
			bodies[w.Body.String()]++
		case w.Code != 409 || w.Header().Get("Retry-After") == "":
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if len(bodies) != 1 || b.effects(t) != 1 {
		t.Errorf("answers %v, %d effects", bodies, b.effects(t))
	}
}

func TestWhileTheFirstRunsOthersAreToldToWait(t *testing.T) {
	t.Parallel()
	b := setup(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	done := make(chan int)
	o := options{key: "k", body: "a", account: "A"}
	go func() {
		w := b.call(t.Context(), func(w http.ResponseWriter, r *http.Request) { close(entered); <-leave; b.add(w, r) }, o)
		done <- w.Code
	}()
	<-entered
	if w := b.call(t.Context(), b.add, o); w.Code != 409 || w.Header().Get("Retry-After") != "1" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	close(leave)
	if code := <-done; code != 201 || b.effects(t) != 1 {
		t.Errorf("%d, %d effects", code, b.effects(t))
	}
}

// The connection is lost after the effect and before the answer is stored, as
// when a process dies: nothing has happened, and the repetition takes effect.
func TestACrashInBetweenLeavesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := options{key: "k", body: "a", account: "A"}
	w := b.call(t.Context(), func(w http.ResponseWriter, r *http.Request) {
		b.add(w, r)
		r.Context().Value(contextKey{}).(*running).tx.Conn().Close(r.Context())
	}, o)
	if w.Code < 500 || b.effects(t) != 0 {
		t.Fatalf("%d, %d effects", w.Code, b.effects(t))
	}
	// The server may take a moment to see that the connection is gone; a client
	// does what 409 with Retry-After tells it.
	again := b.call(t.Context(), b.add, o)
	for deadline := time.Now().Add(30 * time.Second); again.Code == 409 && time.Now().Before(deadline); again = b.call(t.Context(), b.add, o) {
	}
	if again.Code != 201 || b.effects(t) != 1 || again.Header().Get(ReplayedHeader) != "" {
		t.Fatalf("%d, %d effects", again.Code, b.effects(t))
	}
}

func TestWhichAnswersAreKept(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for status, kept := range map[int]bool{200: true, 201: true, 204: true, 400: true, 404: true, 408: false, 409: false, 425: false, 429: false, 500: false, 503: false} {
		before, calls := b.effects(t), 0
		h := func(w http.ResponseWriter, r *http.Request) {
			calls++
			b.add(httptest.NewRecorder(), r)
			w.WriteHeader(status)
		}
		o := options{key: strconv.Itoa(status), account: "A"}
		first, again := b.call(t.Context(), h, o), b.call(t.Context(), h, o)
		wantCalls, wantEffects := 2, 0
		if kept {
			wantCalls, wantEffects = 1, 1
		}
		if first.Code != status || again.Code != status || calls != wantCalls || b.effects(t)-before != wantEffects {
			t.Errorf("%d: then %d, %d calls, %d effects", first.Code, again.Code, calls, b.effects(t)-before)
		}
	}
}

func TestAFailedStatementIsNotTakenForASuccess(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.call(t.Context(), func(w http.ResponseWriter, r *http.Request) {
		b.add(w, r)
		_, _ = b.db.Exec(r.Context(), `SELECT 1/0`)
	}, options{key: "k", account: "A"})
	if w.Code != 500 || b.effects(t) != 0 {
		t.Fatalf("%d, %d effects", w.Code, b.effects(t))
	}
}

func TestALargeAnswerIsSentOnceAndItsEffectsStay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.call(t.Context(), func(w http.ResponseWriter, r *http.Request) {
		b.add(w, r)
		_, _ = w.Write(make([]byte, maxAnswer))
	}, options{key: "k", account: "A"})
	if w.Code != 201 || w.Body.Len() <= maxAnswer || b.effects(t) != 1 {
		t.Fatalf("%d, %d bytes, %d effects", w.Code, w.Body.Len(), b.effects(t))
	}
}

func TestAnswersAreForgottenAfterADay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := options{key: "k", body: "a", account: "A"}
	b.call(t.Context(), b.add, o)
	b.now = start.Add(Life)
	o.body = "b"
	if w := b.call(t.Context(), b.add, o); w.Code != 201 || b.effects(t) != 2 {
		t.Fatalf("%d, %d effects", w.Code, b.effects(t))
	}
	if n, err := Purge(t.Context(), b.pool, b.now.Add(Life+time.Second)); n != 1 || err != nil {
		t.Fatalf("%d %v", n, err)
	}
}

func TestOnlyTheRightKeyOpensAnAnswer(t *testing.T) {
	t.Parallel()
	scope := digest("A")
	aead := func(secret byte, key string) []byte {
		c, err := cipherFor([32]byte{secret}, key, scope)
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := answer{Status: 200, Body: []byte("x")}.seal(c, scope)
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	}
	right, err := cipherFor([32]byte{1}, "k", scope)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := open(right, scope, aead(1, "k")); err != nil || string(a.Body) != "x" {
		t.Fatalf("%+v %v", a, err)
	}
	for name, sealed := range map[string][]byte{"another key": aead(1, "l"), "another secret": aead(2, "k"), "nothing": nil} {
		if _, err := open(right, scope, sealed); err == nil {
			t.Errorf("%s opened it", name)
		}
	}
	later := New(Config{Secret: [32]byte{3}, Former: [][32]byte{{2}, {1}}})
	newest, err := cipherFor(later.Secret, "k", scope)
	if err != nil {
		t.Fatal(err)
	}
	for secret, want := range map[byte]bool{1: true, 2: true, 3: true, 4: false} {
		if a, err := later.open(newest, request{key: "k", scope: scope}, aead(secret, "k")); (err == nil) != want || want && string(a.Body) != "x" {
			t.Errorf("an answer of secret %d after two changes: %+v %v", secret, a, err)
		}
	}
	if _, err := open(right, digest("B"), aead(1, "k")); err == nil {
		t.Error("the answer was moved to another request")
	}
}

func FuzzValid(f *testing.F) {
	f.Add("k")
	f.Add("\x7f")
	f.Fuzz(func(t *testing.T, s string) {
		if valid(s) && (s == "" || len(s) > 255 || strings.ContainsAny(s, "\r\n\x00\x7f")) {
			t.Fatalf("%q", s)
		}
	})
}
