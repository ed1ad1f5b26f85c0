package telemetry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// scraped is what a scrape of g sees.
func scraped(t *testing.T, g prometheus.Gatherer) string {
	t.Helper()
	s := httptest.NewServer(Beside(http.NotFoundHandler(), g))
	defer s.Close()
	resp, err := http.Get(s.URL + Path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, err)
	}
	return string(b)
}

func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
}

func TestRequestsAreNamedByTheirRouteAndNotByTheClient(t *testing.T) {
	t.Parallel()
	reg := New("test", "v1")
	router := chi.NewRouter()
	router.Get("/v1/streams/{id}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	router.Post("/aborts", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/own" {
			r.Pattern = "/own"
			return
		}
		router.ServeHTTP(w, r)
	})
	s := httptest.NewServer(NewRequests(reg, "api").Wrap(h))
	defer s.Close()
	for _, ask := range [][2]string{{"GET", "/v1/streams/secret-1"}, {"GET", "/v1/streams/secret-2"}, {"GET", "/nothing/secret-3"}, {"BREW", "/v1/streams/x"}, {"POST", "/aborts"}, {"GET", "/own"}} {
		req, err := http.NewRequestWithContext(t.Context(), ask[0], s.URL+ask[1], nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
		}
	}
	s.Close() // every handler has returned
	text := scraped(t, reg)
	wantLines(t, text,
		`sluice_http_requests_total{method="GET",route="/v1/streams/{id}",status="418",surface="api"} 2`,
		`sluice_http_requests_total{method="GET",route="none",status="404",surface="api"} 1`,
		`sluice_http_requests_total{method="POST",route="/aborts",status="aborted",surface="api"} 1`,
		`sluice_http_requests_total{method="GET",route="/own",status="200",surface="api"} 1`,
		`sluice_http_request_duration_seconds_count{route="/v1/streams/{id}",surface="api"} 2`,
		`sluice_http_requests_open{surface="api"} 0`, `sluice_build_info{part="test",version="v1"} 1`)
	if strings.Contains(text, "secret") || strings.Contains(text, "BREW") {
		t.Errorf("a client chose a label:\n%s", text)
	}
}

func TestPool(t *testing.T) {
	t.Parallel()
	p := pgtest.Pool(t)
	conn, err := p.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	reg := prometheus.NewRegistry()
	reg.MustRegister(Pool(p))
	wantLines(t, scraped(t, reg), `sluice_postgres_connections{state="used"} 1`)
}

func TestJobs(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	j := NewJobs(reg)
	for _, err := range []error{nil, errors.New("x"), river.JobCancel(errors.New("x")), river.JobSnooze(time.Second)} {
		if got := j.Work(t.Context(), &rivertype.JobRow{Kind: "k"}, func(context.Context) error { return err }); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
	text := scraped(t, reg)
	for _, outcome := range []string{"done", "failed", "cancelled", "snoozed"} {
		wantLines(t, text, `sluice_job_duration_seconds_count{kind="k",outcome="`+outcome+`"} 1`)
	}
}

func TestBacklog(t *testing.T) {
	t.Parallel()
	p := pgtest.Pool(t)
	for _, due := range []string{"-1 minute", "1 hour"} {
		_, err := p.Exec(t.Context(), `INSERT INTO river_job (state, queue, kind, args, max_attempts, scheduled_at)
			VALUES ('available', 'q', 'k', '{}', 1, now() + $1::interval)`, due)
		if err != nil {
			t.Fatal(err)
		}
	}
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(NewBacklog(p))
	wantLines(t, scraped(t, reg), `sluice_jobs_waiting{queue="q"} 1`)
	p.Close()
	if _, err := reg.Gather(); err == nil {
		t.Error("a backlog without Postgres")
	}
}

func TestNamesFollowTheConventions(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	NewJobs(reg).duration.WithLabelValues("k", "done").Observe(1)
	q := NewRequests(reg, "api")
	q.total.WithLabelValues("/", "GET", "200").Inc()
	q.duration.WithLabelValues("/").Observe(1)
	reg.MustRegister(Pool(pgtest.Pool(t)))
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}
