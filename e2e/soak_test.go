package e2e

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/e2e/harness"
)

// soakRequests is how many requests the soak makes. `make soak` makes a million;
// a leak of a hundred bytes a request shows in forty thousand.
var soakRequests = flag.Int64("soak", 40_000, "requests of the soak")

// Heap of the filters and memory of Envoy are as large after many requests, no
// two of them alike, as after the first thousands.
func TestHeapStaysFlat(t *testing.T) {
	s := own(t, nil)
	envoy := s.envoy(t)
	narrow, _ := s.newKey(t, "streams:read")
	k := soakKeys{good: s.dev["SLUICE_API_KEY"], narrow: narrow, session: s.dev["SLUICE_SESSION_TOKEN"]}
	s.accepted(t, k.good)
	s.soak(t, 20_000, k)
	heap, memory := s.heap(t), residentMemory(t, envoy)
	counts := s.soak(t, *soakRequests, k)
	heapAfter, memoryAfter := s.heap(t), residentMemory(t, envoy)
	t.Logf("after 20,000 requests and %d more: heap of the filters %d and %d KiB, Envoy %d and %d KiB", *soakRequests, heap>>10, heapAfter>>10, memory>>10, memoryAfter>>10)
	t.Logf("answers by status: %v", counts)
	if heapAfter > heap+2<<20 { // a worker has collected, or is about to: half a MiB each way
		t.Errorf("the heap grew from %d to %d bytes", heap, heapAfter)
	}
	if memoryAfter > memory+6<<20 {
		t.Errorf("Envoy grew from %d to %d bytes", memory, memoryAfter)
	}
	s.soakUnread(t)
}

// soakUnread: failed requests, each of which is logged, cost Envoy no memory while
// nobody reads its log.
func (s *stack) soakUnread(t testing.TB) {
	t.Helper()
	if err := s.Signal(syscall.SIGSTOP); err != nil { // who reads the log
		t.Fatal(err)
	}
	before := s.allocated(t)
	nowhere := func(*rand.Rand) (string, []int) { return "GET /nowhere HTTP/1.1\r\nHost: soak\r\n\r\n", []int{404} }
	s.soakWith(t, 20_000, nowhere)
	after := s.allocated(t)
	if err := s.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if after > before+2<<20 {
		t.Errorf("20,000 lines of the access log that nobody reads take Envoy from %d to %d bytes", before, after)
	}
	r, err := try(http.MethodGet, "http://"+s.env["SLUICE_EDGE_METRICS_ADDR"]+"/metrics", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^sluice_agent_log_lines_dropped_total [1-9]`).MatchString(r.body) {
		t.Error("the agent does not count the lines that it has dropped")
	}
}

// allocated is what Envoy has asked of its allocator, in bytes.
func (s *stack) allocated(t testing.TB) int64 {
	t.Helper()
	var m struct {
		Allocated int64 `json:",string"`
	}
	res, err := http.Get("http://" + s.env["SLUICE_ENVOY_ADMIN_ADDR"] + "/memory")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&m); err != nil || m.Allocated == 0 {
		t.Fatal(m, err)
	}
	return m.Allocated
}

// soakKeys are the credentials of the soak that are good.
type soakKeys struct{ good, narrow, session string }

// soakKinds are the kinds of requests: by what share of them, with what
// credential and path, and which answers are right. Guesses at credentials soon
// meet the limit of their address.
var soakKinds = []struct {
	weight     int
	credential func(k soakKeys, r *rand.Rand) string
	path       func(r *rand.Rand) string
	right      []int
}{
	{50, func(k soakKeys, _ *rand.Rand) string { return k.narrow }, func(r *rand.Rand) string { return "/v1/analytics/views?" + word(r, 40) }, []int{403}},
	{10, func(k soakKeys, _ *rand.Rand) string { return k.good }, func(r *rand.Rand) string { return "/v1/streams/" + word(r, 30) }, []int{404}},
	{10, func(k soakKeys, _ *rand.Rand) string { return k.session }, func(r *rand.Rand) string { return "/v1/nothing/" + word(r, 60) }, []int{403}},
	{10, func(_ soakKeys, r *rand.Rand) string { return "slk_" + word(r, 60) }, func(*rand.Rand) string { return "/v1/streams" }, []int{401, 429}},
	{10, func(_ soakKeys, r *rand.Rand) string { return word(r, 30) + "." + word(r, 300) + "." + word(r, 80) }, func(*rand.Rand) string { return "/v1/streams" }, []int{401, 429}},
	{10, func(soakKeys, *rand.Rand) string { return "" }, func(r *rand.Rand) string { return "/" + word(r, 20) + "/" + word(r, 200) }, []int{403, 404, 429}},
}

// word is a random text of letters, digits and a few others, that has a letter or
// more.
func word(r *rand.Rand, most int) string {
	const of = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-~"
	b := make([]byte, 1+r.IntN(most))
	for i := range b {
		b[i] = of[r.IntN(len(of))]
	}
	b[0] = of[r.IntN(26)]
	return string(b)
}

// soakRequest is a request of one kind with up to 40 headers that nobody knows.
func soakRequest(k soakKeys, r *rand.Rand) (text string, right []int) {
	n := r.IntN(100)
	kind := soakKinds[0]
	for _, kind = range soakKinds {
		if n -= kind.weight; n < 0 {
			break
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "GET %s HTTP/1.1\r\nHost: %s\r\n", kind.path(r), word(r, 20))
	if c := kind.credential(k, r); c != "" {
		fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", c)
	}
	for range r.IntN(40) {
		fmt.Fprintf(&b, "X-%s: %s\r\n", word(r, 20), word(r, 100))
	}
	b.WriteString("\r\n")
	return b.String(), kind.right
}

// soak makes n random requests and counts their statuses.
func (s *stack) soak(t testing.TB, n int64, k soakKeys) map[int]int64 {
	t.Helper()
	return s.soakWith(t, n, func(r *rand.Rand) (string, []int) { return soakRequest(k, r) })
}

// soakWith makes n requests on some connections and counts their statuses; request
// returns the next one, and which answers are right.
func (s *stack) soakWith(t testing.TB, n int64, request func(*rand.Rand) (text string, right []int)) map[int]int64 {
	t.Helper()
	var left atomic.Int64
	left.Store(n)
	var counts [600]atomic.Int64
	var g errgroup.Group
	for seed := range uint64(8) {
		g.Go(func() error {
			conn, err := net.Dial("tcp", s.front())
			if err != nil {
				return err
			}
			defer conn.Close()
			from, random := bufio.NewReader(conn), rand.New(rand.NewPCG(uint64(n), seed))
			for left.Add(-1) >= 0 {
				text, right := request(random)
				if _, err := io.WriteString(conn, text); err != nil {
					return err
				}
				res, err := http.ReadResponse(from, nil)
				if err != nil {
					return fmt.Errorf("%q: %w", text, err)
				}
				if _, err := io.Copy(io.Discard, res.Body); err != nil || !slices.Contains(right, res.StatusCode) {
					return fmt.Errorf("%q: status %d, want one of %v: %w", text, res.StatusCode, right, err)
				}
				counts[res.StatusCode].Add(1)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	found := map[int]int64{}
	for status := range counts {
		if n := counts[status].Load(); n > 0 {
			found[status] = n
		}
	}
	return found
}

// residentMemory is what a process holds of memory now, in bytes.
func residentMemory(t testing.TB, pid int) int64 {
	t.Helper()
	now, _, err := harness.Memory(pid)
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// peakMemory is the most memory that a process has held so far, in bytes.
func peakMemory(t testing.TB, pid int) int64 {
	t.Helper()
	_, peak, err := harness.Memory(pid)
	if err != nil {
		t.Fatal(err)
	}
	return peak
}
