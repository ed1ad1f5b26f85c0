package xds

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// large is the default document with n routes and n/40 products more, of which
// one route differs with each variant.
func large(b *testing.B, n, variant int) config.Document {
	d := document(b)
	for i := range n / 40 {
		d.Products = append(d.Products, config.Product{Name: fmt.Sprintf("p%d", i), Upstreams: []config.Upstream{{Address: fmt.Sprintf("127.0.0.1:%d", 20000+i)}}})
	}
	for i := range n {
		path := fmt.Sprintf("/v1/bench%d/{id}/part%d", i/20, i)
		if i == 0 {
			path = fmt.Sprintf("/v1/bench/variant%d", variant)
		}
		d.Routes = append(d.Routes, config.Route{Name: fmt.Sprintf("bench.%d", i), Methods: []string{"GET"}, Path: path,
			Product: d.Products[3+i%(n/40)].Name, Auth: []string{"key"}, Scope: "streams:read"})
	}
	return d
}

// BenchmarkChangeReachesThreeEnvoys measures one changed route among 2,000,
// from Publish to the last edge's acceptance of the last step; and what it costs
// each edge on its main thread, and on all of them.
//
//	path  a route has another path: the policy stays as it is
//	name  a route goes and another one comes: so does its policy
func BenchmarkChangeReachesThreeEnvoys(b *testing.B) {
	for _, what := range []string{"path", "name"} {
		b.Run(what, func(b *testing.B) {
			s, addr := newServer(b, Config{AckTimeout: time.Minute})
			publish(b, s, 1, large(b, 2000, 1))
			var pids []int
			for range 3 {
				admin, pid := startEnvoy(b, addr)
				poll(b, func() string { return gateway(admin) })
				pids = append(pids, pid)
			}
			variants := []config.Document{large(b, 2000, 2), large(b, 2000, 3)}
			if what == "name" {
				for i, d := range variants {
					d.Routes[len(d.Routes)-2000].Name = fmt.Sprintf("bench.variant%d", i)
				}
			}
			version := int64(1)
			main, all := spent(b, pids)
			for b.Loop() {
				version++
				publish(b, s, version, variants[version%2])
			}
			mainThen, allThen := spent(b, pids)
			per := float64(b.N * len(pids))
			b.ReportMetric(float64((mainThen-main).Milliseconds())/per, "main-ms/edge")
			b.ReportMetric(float64((allThen-all).Milliseconds())/per, "all-ms/edge")
			for _, e := range s.Edges() {
				if !e.Current {
					b.Errorf("%+v", e.Refusals)
				}
			}
		})
	}
}

// spent is the CPU time of processes: of their first threads, and of all.
func spent(b *testing.B, pids []int) (main, all time.Duration) {
	for _, pid := range pids {
		main += cpuTime(b, fmt.Sprintf("/proc/%d/task/%d/stat", pid, pid))
		all += cpuTime(b, fmt.Sprintf("/proc/%d/stat", pid))
	}
	return main, all
}

// cpuTime reads user and system time, in hundredths of a second, from a stat file.
func cpuTime(b *testing.B, file string) time.Duration {
	text, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var ticks time.Duration
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			b.Fatal(err)
		}
		ticks += time.Duration(n)
	}
	return ticks * 10 * time.Millisecond
}

// BenchmarkBuild measures what a replica spends on 2,000 routes by itself.
func BenchmarkBuild(b *testing.B) {
	s, _ := newServer(b, Config{})
	d := large(b, 2000, 1)
	for b.Loop() {
		if err := s.Check(d); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOneRouteOverREST measures what a replica spends on one changed route
// among 2,000, from the request that changes it to the publication, with no edge.
func BenchmarkOneRouteOverREST(b *testing.B) {
	pool := pgtest.Pool(b)
	s, _ := newServer(b, Config{})
	s.config.Numbers = func(ctx context.Context, d config.Document) (config.Numbers, error) {
		return config.EnsureNumbers(ctx, pool, d)
	}
	store := config.Store{DB: pool, Memory: &config.Memory{}}
	if _, err := store.Put(b.Context(), large(b, 2000, 0), "bench", "", config.Any); err != nil {
		b.Fatal(err)
	}
	l := Loader{Pool: pool, Memory: store.Memory, Server: s, Log: slog.New(slog.DiscardHandler)}
	r := chi.NewRouter()
	config.NewPublisher(store, s.Check, s.Checker()).Routes(r, httpapi.Adapter{})
	n := 0
	for b.Loop() {
		n++
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodPut, "/routes/bench.0",
			strings.NewReader(fmt.Sprintf(`{"path":"/v1/variant%d","product":"media","auth":["key"]}`, n))))
		if w.Code != http.StatusOK {
			b.Fatal(w.Body)
		}
		if err := l.Load(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
