package requestlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/platform/limits/growth"
)

// line is one of Envoy's, of a request with an id, a status and a caller.
func line(mark, id string, status int, caller string) string {
	return fmt.Sprintf(`{"#":"%s","bytes_in":1,"bytes_out":2,"caller":"%s","client":"192.0.2.1","flags":"-","method":"GET","path":"/v1/x","request_id":"%s","route":"r","status":%d,"time":"2026-01-02T03:04:05.678Z","total_us":1500}`+"\n",
		mark, caller, id, status)
}

// A call by gRPC that failed is a failure, and counts under the HTTP status of its own.
func TestCallsByGRPC(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]int{"0": 200, "5": 404, "14": 503} {
		text := strings.Replace(line("ss", "id-1", 200, "nobody"), `"method"`, `"grpc_status":`+status+`,"method"`, 1)
		_, rest, _ := marked([]byte(text))
		r, ok := parse(rest, true)
		if !ok || r.Status != want || r.GRPC == nil || failed(rest) != (want != 200) {
			t.Errorf("grpc-status %s: %+v, failed %v", status, r, failed(rest))
		}
	}
}

// control is a control plane that takes batches, or does not.
type control struct {
	mu      sync.Mutex
	taken   []edgeapi.RequestBatch
	away    bool
	sampled []Sample
}

// comeBack ends its absence.
func (c *control) comeBack() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = false
}

// batches are those that it has taken.
func (c *control) batches() []edgeapi.RequestBatch {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.taken)
}

// samples are those that Envoy was told of.
func (c *control) samples() []Sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sampled)
}

func (c *control) sample(_ context.Context, s Sample) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sampled = append(c.sampled, s)
	return nil
}

func (c *control) send(_ context.Context, b edgeapi.RequestBatch) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		return errors.New("away")
	}
	c.taken = append(c.taken, b)
	return nil
}

// ids are those that have arrived.
func (c *control) ids() (ids []string) {
	for _, b := range c.batches() {
		for _, r := range b.Requests {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// dropped sums up what was told of requests that are missing.
func (c *control) dropped() map[string]int64 {
	sum := map[string]int64{}
	for _, b := range c.batches() {
		for account, n := range b.Dropped {
			sum[account] += n
		}
	}
	return sum
}

// started runs a recorder in the present bubble, and stops it at the end.
func started(t *testing.T, c *control, queue int) (*Writer, *bytes.Buffer) {
	t.Helper()
	r := New(Config{Edge: "e", Send: c.send, Queue: queue, SetSample: c.sample})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	var printed bytes.Buffer
	return &Writer{Print: &printed, Record: r}, &printed
}

func write(t *testing.T, w *Writer, lines ...string) {
	t.Helper()
	text := strings.Join(lines, "")
	if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
		t.Fatal(n, err)
	}
}

// What is printed and what is recorded are two questions, which the mark answers.
func TestOneLinePrintedRecordedOrBoth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &control{}
		w, printed := started(t, c, 0)
		write(t, w, "a line of Envoy's own\n", line("sa", "1", 500, ""), line("sa", "2", 200, ""), line("aa", "3", 200, ""), line("na", "4", 404, ""), line("sn", "5", 404, ""), line("nn", "6", 500, ""))
		time.Sleep(sendEvery + time.Millisecond) // of the bubble
		if got := fmt.Sprint(c.ids()); got != "[1 2 3 4]" {
			t.Errorf("recorded %s", got)
		}
		text := printed.String()
		for id, want := range map[string]bool{"1": true, "2": false, "3": true, "4": false, "5": true, "6": false} {
			if strings.Contains(text, `"request_id":"`+id+`"`) != want {
				t.Errorf("%s is printed: %v, in %s", id, !want, text)
			}
		}
		if !strings.HasPrefix(text, "a line of Envoy's own\n{\"bytes_in\":1,") || strings.Contains(text, "#") {
			t.Error(text)
		}
	})
}

// A caller who fails in a loop, or many whom nobody knows, push nobody else's
// failures out; what is missing is told by account.
func TestAFloodLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &control{}
		w, _ := started(t, c, 0)
		for i := range 5000 {
			write(t, w, line("sa", fmt.Sprint("loud", i), 429, "refused;c=rate_limited;a=acct_loud;k=key_1"), line("sa", fmt.Sprint("stranger", i), 401, "refused;c=x"))
		}
		write(t, w, line("sa", "quiet", 500, "v2;u=p;a=acct_quiet;k=key_2;p=pro;s=a:b,c:d"))
		time.Sleep(sendEvery + time.Millisecond)
		ids := c.ids()
		if len(ids) != failuresEach+strangersEach+1 || ids[len(ids)-1] != "quiet" {
			t.Errorf("%d recorded, the last %s", len(ids), ids[len(ids)-1])
		}
		if got := c.dropped(); got["acct_loud"] != 5000-failuresEach || got[""] != 5000-strangersEach {
			t.Errorf("dropped %v", got)
		}
		all := c.batches()
		last := all[len(all)-1].Requests
		if r := last[len(last)-1]; r.Account != "acct_quiet" || r.Key != "key_2" || r.Plan != "pro" || fmt.Sprint(r.Scopes) != "[a:b c:d]" {
			t.Errorf("%+v", r)
		}
	})
}

// While the control plane is away the newest wait, up to a bound, and nobody waits for
// it.
func TestTheControlPlaneIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &control{away: true}
		w, _ := started(t, c, 10)
		for i := range 30 {
			write(t, w, line("sa", fmt.Sprint(i), 500, "v2;u=p;a=acct_1;k=key_1"))
			time.Sleep(sendEvery)
		}
		c.comeBack()
		time.Sleep(sendEvery + time.Millisecond)
		if got := c.ids(); len(got) != 10 || got[0] != "20" || got[9] != "29" {
			t.Errorf("%v", got)
		}
		if got := c.dropped()["acct_1"]; got != 20 {
			t.Errorf("%d are said to be missing", got)
		}
	})
}

// Envoy writes fewer lines where there are too many, and all of them again when the
// traffic is gone.
func TestTheSampleFollowsTheTraffic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &control{}
		w, _ := started(t, c, 0)
		for i := range 10000 {
			write(t, w, line("na", fmt.Sprint("a", i), 200, ""), line("na", fmt.Sprint("b", i), 500, ""))
		}
		time.Sleep(2*sendEvery + time.Millisecond)
		if got := c.samples(); len(got) != 1 || got[0].Success != edgeapi.WholeSample/50 || got[0].Failure >= edgeapi.WholeSample/10 {
			t.Fatalf("%v", got)
		}
		time.Sleep(10 * time.Second)
		if all := c.samples(); all[len(all)-1] != whole {
			t.Errorf("%v", all)
		}
	})
}

// A request without a route was refused before our headers were taken from it: its
// caller is the client's own word.
func TestACallerWithoutARouteIsNobody(t *testing.T) {
	t.Parallel()
	text := strings.Replace(line("sa", "1", 400, "v2;u=p;a=acct_evil;k=key_evil"), `"route":"r",`, "", 1)
	_, rest, ok := marked([]byte(text))
	if r, read := parse(rest, true); !ok || !read || r.Account != "" || r.Key != "" || len(accountOf(rest)) != 0 {
		t.Errorf("%v %v %+v", ok, read, r)
	}
}

// A line says why a request that passed would have been refused, as it says it of refusals.
func TestALineInTheShadow(t *testing.T) {
	t.Parallel()
	text := strings.Replace(line("sa", "1", 200, "v2;u=p;a=acct_1;k=key_1;p=pro;s=a:b;e=1"), `"total_us"`, `"would_refuse":"c=AUTH_002;f=scope;i=is not granted;x=clips:write","total_us"`, 1)
	_, rest, _ := marked([]byte(text))
	r, ok := parse(rest, true)
	if !ok || r.WouldRefuse != "AUTH_002" || r.WouldReason != "scope is not granted; expected: clips:write" || r.Code != "" || r.Reason != "" || r.Account != "acct_1" {
		t.Errorf("%+v", r)
	}
}

// What a client chooses is no part of the line's own form.
func TestQuotedTextIsNoField(t *testing.T) {
	t.Parallel()
	text := strings.Replace(line("sn", "1", 200, ""), `"/v1/x"`, `"/v1/x,\"status\":500,\"caller\":\"refused;a=acct_evil\""`, 1)
	if _, rest, _ := marked([]byte(text)); failed(rest) || len(accountOf(rest)) != 0 {
		t.Error("a path is read as fields")
	}
}

func TestPathsAreLeftOutWhereTheyMayNotBeKept(t *testing.T) {
	t.Parallel()
	_, rest, _ := marked([]byte(line("as", "1", 500, "")))
	if r, ok := parse(rest, false); !ok || r.Path != "" || r.Method != "GET" {
		t.Errorf("%+v", r)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(line("sa", "1", 500, "v2;u=p;a=acct_1;k=key_1;p=pro;s=a:b,c:d;e=1")))
	f.Add([]byte(line("na", "2", 0, "refused;c=AUTH_002;f=scope;i=is not granted;x=a:b")))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, rest, ok := marked(text)
		if !ok {
			return
		}
		failed(rest)
		accountOf(rest)
		growth.Linear(t, len(rest), 64, 16<<10, func() { parse(rest, true) })
		r, ok := parse(rest, true)
		if ok && (len(r.Path) > maxPath || len(r.Scopes) > maxScopes || len(r.Reason) > maxText || len(r.ID) > maxName || r.Route == "" && r.Account != "") {
			t.Errorf("%+v", r)
		}
	})
}

// What a line costs that is not recorded, as there is no room, and one that is.
func BenchmarkLine(b *testing.B) {
	text := []byte(line("sa", "0e3f3c56-77d8-4d40-ac8f-b820db3331bb", 429, "refused;c=rate_limited;a=acct_0000000000001;k=key_0000000000001;p=pro;s=streams:read"))
	for name, each := range map[string]int{"dropped": 0, "for a rehearsal": 0, "for both": 1 << 30} {
		b.Run(name, func(b *testing.B) {
			now := time.Time{}
			r := New(Config{Edge: "e", Now: func() time.Time { return now }})
			r.failures = newBudget(each, each)
			w := &Writer{Print: &bytes.Buffer{}, Record: r}
			b.ReportAllocs()
			for b.Loop() {
				if name != "dropped" {
					now = now.Add(blockEvery)
					r.records.close(now, false)
				}
				_, _ = w.Write(text)
				w.Print.(*bytes.Buffer).Reset()
			}
		})
	}
}
