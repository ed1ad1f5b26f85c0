package keyfeed

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/storage/postgres/listen"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

type bundle struct {
	db     *pgxpool.Pool
	counts *prometheus.Registry
	feed   *Feed
	server *httptest.Server
	stop   context.CancelFunc
}

// setup serves a feed with a listener that is connected.
func setup(t *testing.T) bundle {
	t.Helper()
	db := pgtest.Pool(t)
	counts := prometheus.NewRegistry()
	l := listener(db)
	f := New(Config{Pool: db, Heard: l.On(Channel), Tokens: []string{"secret", "next"}, Metrics: counts,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), pageRecords: 100})
	ctx, stop := context.WithCancel(t.Context())
	listening := f.notifier.next()
	ended := make(chan struct{})
	go func() { defer close(ended); go l.Run(ctx); f.Run(ctx) }()
	<-listening
	s := httptest.NewServer(f)
	t.Cleanup(func() { stop(); <-ended; s.Close() })
	return bundle{db, counts, f, s, stop}
}

// listener is one on the database of a pool.
func listener(db *pgxpool.Pool) *listen.Listener {
	return listen.New(func(ctx context.Context) (*pgx.Conn, error) { return pgx.ConnectConfig(ctx, db.Config().ConnConfig) }, slog.New(slog.DiscardHandler))
}

func (b bundle) get(t *testing.T, query, token string) (int, []byte) {
	t.Helper()
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, b.server.URL+edgeapi.RecordsPath+"?"+query, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, body
}

func (b bundle) count(t *testing.T, name string) float64 {
	t.Helper()
	families, err := b.counts.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

func (b bundle) poll(t *testing.T, q request) keytable.Page {
	t.Helper()
	query := fmt.Sprintf("epoch=%d&position=%d&wait=%d", q.epoch, q.position, int(q.wait.Seconds()))
	if q.cursor != (keytable.Tag{}) {
		query += "&cursor=" + hex.EncodeToString(q.cursor[:])
	}
	status, body := b.get(t, query, "secret")
	p, ok := keytable.ParsePage(body)
	if status != 200 || !ok {
		t.Errorf("%d, %d bytes", status, len(body))
	}
	return p
}

func TestSnapshotThenDeltaOverHTTP(t *testing.T) {
	t.Parallel()
	b := setup(t)
	put(t, b.db, records(0, 250)...)
	e := &edge{}
	for !e.ready {
		e.apply(t, b.poll(t, e.q))
	}
	put(t, b.db, record(250))
	e.apply(t, b.poll(t, e.q))
	if len(e.have) != 251 || len(e.log) != 1 {
		t.Fatalf("%d records, %d changes", len(e.have), len(e.log))
	}
	if n := b.count(t, "sluice_feed_records_total"); n != 251 {
		t.Fatalf("%v records counted", n)
	}
}

// A waiting poll is answered by the change itself: its wait is far longer than
// the test may run, and only Run wakes it.
func TestWaitingPollsWakeAtAChange(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := &edge{}
	e.apply(t, b.poll(t, e.q))
	e.q.wait = maxWait
	const edges = 5
	answers := make(chan keytable.Page, edges)
	for range edges {
		go func() { answers <- b.poll(t, e.q) }()
	}
	put(t, b.db, record(1))
	for range edges {
		if p := <-answers; p.Snapshot || len(p.Records) != keytable.RecordSize {
			t.Fatalf("%+v", p)
		}
	}
}

// The server closes every connection of the listener; the feed must come back
// by itself and wake whoever waits.
func TestListenerReconnects(t *testing.T) {
	t.Parallel()
	b := setup(t)
	back := b.feed.notifier.next()
	if _, err := b.db.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND query = 'LISTEN `+Channel+`'`); err != nil {
		t.Fatal(err)
	}
	<-back
	changed := b.feed.notifier.next()
	put(t, b.db, record(1))
	<-changed
}

func TestWaitingPollsEndWithTheFeed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := &edge{}
	e.apply(t, b.poll(t, e.q))
	e.q.wait = maxWait
	answer := make(chan keytable.Page)
	go func() { answer <- b.poll(t, e.q) }()
	b.stop()
	if p := <-answer; len(p.Records) != 0 || p.Snapshot {
		t.Fatalf("%+v", p)
	}
}

func TestFeedRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, c := range map[string]struct {
		query, token string
		want         int
	}{
		"no token":    {"", "", 401},
		"wrong token": {"", "secreT", 401},
		"half of one": {"", "sec", 401},
		"both":        {"", "secret,next", 401},
		"the next":    {"epoch=x&position=-1&cursor=zz&wait=31", "next", 400},
		"bad query":   {"epoch=x&position=-1&cursor=zz&wait=31", "secret", 400},
	} {
		status, body := b.get(t, c.query, c.token)
		if status != c.want {
			t.Errorf("%s: %d, want %d", name, status, c.want)
		}
		if n := strings.Count(string(body), `"field"`); c.want == 400 && n != 4 {
			t.Errorf("%s: %d bad fields named, want 4: %s", name, n, body)
		}
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add("epoch=1&position=2&wait=3")
	f.Add("cursor=000102030405060708090a0b0c0d0e0f")
	f.Add("wait=18446744073709551615")
	f.Fuzz(func(t *testing.T, s string) {
		q, err := url.ParseQuery(s)
		if err != nil {
			return
		}
		r, err := parseRequest(q)
		if err == nil && (r.wait < 0 || r.wait > maxWait || int64(r.epoch) < 0 || int64(r.position) < 0) {
			t.Fatalf("%+v", r)
		}
	})
}

// The database is gone: an edge is told to come back, and goes on with what it has.
func TestWithoutADatabaseEdgesAreToldToComeBack(t *testing.T) {
	t.Parallel()
	dead, err := pgxpool.New(t.Context(), "postgres://u:p@127.0.0.1:1/none")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(dead.Close)
	counts := prometheus.NewRegistry()
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	f := New(Config{Pool: dead, Metrics: counts, Log: quiet, Respond: httpapi.Adapter{Log: quiet}})
	for _, query := range []string{"", "?epoch=1&position=2&wait=30", "?epoch=1&position=2&cursor=000102030405060708090a0b0c0d0e0f"} {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest("GET", edgeapi.RecordsPath+query, nil))
		if w.Code != 503 || w.Header().Get("Retry-After") == "" {
			t.Errorf("%q: %d %s", query, w.Code, w.Body)
		}
	}
	if n := (bundle{counts: counts}).count(t, "sluice_feed_pages_total"); n != 3 {
		t.Errorf("%v failures counted", n)
	}
}

// An edge that goes away while it waits leaves nothing behind, and is no failure.
func TestAnEdgeGoesAwayWhileItWaits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := &edge{}
	e.apply(t, b.poll(t, e.q))
	ctx, leave := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, "GET", fmt.Sprintf("%s?epoch=%d&position=%d&wait=30", edgeapi.RecordsPath, e.q.epoch, e.q.position), nil)
	r.Header.Set("Authorization", "Bearer secret")
	w, done := httptest.NewRecorder(), make(chan struct{})
	go func() { defer close(done); b.feed.ServeHTTP(w, r) }()
	leave()
	<-done
	if w.Body.Len() > 0 || w.Code >= 400 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
