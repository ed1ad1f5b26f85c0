package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// amounts is what usage says of some requests.
type amounts struct {
	Route    string
	Status   string
	KeyID    string `json:"key_id"`
	Requests int64
	Refused  int64
	BytesIn  int64   `json:"bytes_in"`
	BytesOut int64   `json:"bytes_out"`
	Seconds  float64 `json:"connection_seconds"`
}

// usage reads the stack's usage of the last hour, by what is asked for.
func (s *stack) usage(t testing.TB, by string) []amounts {
	t.Helper()
	var all []amounts
	for more := true; more; {
		q := url.Values{"granularity": {"hour"}, "group_by": {by}, "limit": {"100"}, "offset": {strconv.Itoa(len(all))}}
		r := call(t, http.MethodGet, s.url("/v1/billing/usage?"+q.Encode()), s.dev["SLUICE_API_KEY"], nil)
		wantStatus(t, r, 200)
		page := into[struct{ Data []amounts }](t, r).Data
		all, more = append(all, page...), len(page) == 100
	}
	return all
}

// ofKey sums up the usage of one key, by route and status.
func (s *stack) ofKey(t testing.TB, id string) map[string]amounts {
	t.Helper()
	sums := map[string]amounts{}
	for _, a := range s.usage(t, "route,status,key") {
		if a.KeyID == id {
			name := a.Route + " " + a.Status
			sum := sums[name]
			sum.Requests, sum.Refused = sum.Requests+a.Requests, sum.Refused+a.Refused
			sum.BytesIn, sum.BytesOut, sum.Seconds = sum.BytesIn+a.BytesIn, sum.BytesOut+a.BytesOut, sum.Seconds+a.Seconds
			sums[name] = sum
		}
	}
	return sums
}

// Each request is counted once, with its status and the bytes of its bodies.
func TestUsageIsExact(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	key, id := s.newKey(t, "streams:read", "streams:write")
	want := map[string]amounts{}
	count := func(name string, refused int64, r response, sent int) {
		a := want[name]
		a.Requests, a.Refused, a.BytesIn, a.BytesOut = a.Requests+1, a.Refused+refused, a.BytesIn+int64(sent), a.BytesOut+int64(len(r.body))
		want[name] = a
	}
	for i := range 30 {
		count("streams.list 2xx", 0, call(t, http.MethodGet, s.url("/v1/streams?limit=1"), key, nil), 0)
		if i%3 == 0 {
			count("streams.get 4xx", 0, call(t, http.MethodGet, s.url("/v1/streams/none"), key, nil), 0)
			count("analytics.views 4xx", 1, call(t, http.MethodGet, s.url("/v1/analytics/views"), key, nil), 0)
		}
		if i%10 == 0 {
			title := strings.Repeat("t", 100)
			sent := fmt.Sprintf(`{"protocol":"rtmp","title":"%s"}`, title)
			count("streams.create 2xx", 0, call(t, http.MethodPost, s.url("/v1/streams"), key, map[string]string{"protocol": "rtmp", "title": title}), len(sent))
		}
	}
	eventually(t, "all requests are counted", func() error {
		got := s.ofKey(t, id)
		delete(got, "validate 2xx") // by which newKey waits for the key
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("usage is %v, want %v", got, want)
		}
		return nil
	})
}

// settledUsage waits until the edge has nothing left to send.
func (s *stack) settledUsage(t testing.TB) {
	t.Helper()
	eventually(t, "all usage is taken", func() error {
		r, err := try(http.MethodGet, s.dev["SLUICE_ENVOY_ADMIN_URLS"]+"/stats?filter=sluice_meter_batches", "", nil)
		if err != nil {
			return err
		}
		var begun, settled int
		for line := range strings.Lines(r.body) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			n, _ := strconv.Atoi(value)
			if strings.Contains(name, "begun") {
				begun += n
			} else {
				settled += n
			}
		}
		if begun == 0 || begun != settled {
			return fmt.Errorf("%d batches begun, %d settled", begun, settled)
		}
		return nil
	})
}

// A stop loses nothing, a kill at most the last second, and neither counts
// anything twice.
func TestUsageSurvivesTheEnd(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	env := settings(t, dir)
	s := startIn(t, dir, env)
	key, id := s.newKey(t, "streams:read")
	requests := func(n int) {
		t.Helper()
		for range n {
			wantStatus(t, call(t, http.MethodGet, s.url("/v1/streams"), key, nil), 200)
		}
	}
	counted := func() int64 { return s.ofKey(t, id)["streams.list 2xx"].Requests }

	requests(40)
	s.settledUsage(t)
	if got := counted(); got != 40 {
		t.Errorf("%d of 40 requests are counted before the kill", got)
	}
	requests(5) // in the last second
	if err := syscall.Kill(s.envoy(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.accepted(t, key)
	s.settledUsage(t)
	before := counted()
	if before < 41 || before > 46 { // 40 before the last second, and the one by which accepted ends
		t.Errorf("%d requests are counted after the kill, want 41 to 46", before)
	}

	requests(30)
	if err := s.Stop(); err != nil { // at once: the last counts are in memory only
		t.Fatal(err)
	}
	s = startIn(t, dir, env)
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	if got := counted(); got != before+30 {
		t.Errorf("%d requests are counted after the stop, want %d", got, before+30)
	}
}

// An account that has made as many requests as its plan allows is refused until
// the plan allows more; its owner still sees why. A key's last use is shown.
func TestQuotaAndLastUse(t *testing.T) {
	t.Parallel()
	s := lentStack(t)
	key, id := s.newKey(t, "streams:read", "billing:read")
	wantStatus(t, call(t, http.MethodGet, s.url("/v1/streams"), key, nil), 200)
	session := s.dev["SLUICE_SESSION_TOKEN"]
	eventually(t, "the key's last use is shown", func() error {
		k := into[struct {
			At string `json:"last_used_at"`
			IP string `json:"last_used_ip"`
		}](t, call(t, http.MethodGet, s.url("/v1/auth/keys/"+id), session, nil))
		if k.At == "" || k.IP != "127.0.0.1" {
			return fmt.Errorf("last used at %q from %q", k.At, k.IP)
		}
		return nil
	})
	s.quota(t, 1)
	eventually(t, "the quota is used up", func() error {
		r, err := try(http.MethodGet, s.url("/v1/streams"), key, nil)
		return unless(err, r, http.StatusForbidden)
	})
	wantError(t, call(t, http.MethodGet, s.url("/v1/streams"), key, nil), 403, "BILLING_002")
	month := into[struct {
		Month struct {
			Requests int64
			Limit    *int64
		} `json:"month_to_date"`
	}](t, call(t, http.MethodGet, s.url("/v1/billing/usage"), session, nil)).Month
	if month.Limit == nil || *month.Limit != 1 || month.Requests < 2 {
		t.Errorf("the report says %+v", month)
	}
	s.quota(t, 1_000_000)
	eventually(t, "there is quota again", func() error { return s.answers(key, http.StatusOK) })
}

// quota makes the quota of the seeded account's plan so many requests a month. Edges hear
// whose is used up by the key feed, some time later.
func (s *stack) quota(t testing.TB, requests int) {
	t.Helper()
	s.reconfigure(t, func(d map[string]any) {
		for _, p := range d["plans"].([]any) {
			if plan := p.(map[string]any); plan["name"] == "local" {
				plan["quota"] = map[string]any{"requests": requests}
			}
		}
	})
}

// A parcel that an edge sends again, here by hand, counts once.
func TestAParcelSentTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	parcel := func(sequence byte) []byte {
		b := []byte{1, 0xe8, 7} // a batch, closed at 1000 s, so long ago that it counts as of yesterday
		b = append(b, 1, 6, 'r', 'e', 'p', 'l', 'a', 'y', 1, 'p', 1)
		b = append(b, s.accountNumber(t)...)
		b = append(b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2) // no key, the first route, 2xx
		b = append(b, 1, 0, 0, 0, 1, 1)             // one request, of the first bucket
		b = append(b, 0)                            // no uses
		p := append([]byte("SLU\x01"), 4, 'h', 'a', 'n', 'd', 4, 'b', 'o', 'o', 't', sequence, 1, byte(len(b)))
		return append(p, b...)
	}
	for _, sequence := range []byte{1, 1, 2, 1, 2} {
		req, err := http.NewRequest(http.MethodPost, "http://"+s.env["SLUICE_XDS_ADDR"]+"/feed/v1/usage", bytes.NewReader(parcel(sequence)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+readEnv(t, filepath.Join(s.dir, "secrets.env"))["SLUICE_FEED_TOKEN"])
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusNoContent {
			t.Fatalf("parcel %d: status %d", sequence, res.StatusCode)
		}
	}
	got := int64(0)
	q := url.Values{"granularity": {"day"}, "group_by": {"route"}, "limit": {"100"}}
	r := call(t, http.MethodGet, s.url("/v1/billing/usage?"+q.Encode()), s.dev["SLUICE_API_KEY"], nil)
	for _, a := range into[struct{ Data []amounts }](t, r).Data {
		if a.Route == "replay" {
			got += a.Requests
		}
	}
	if got != 2 {
		t.Errorf("two parcels count %d requests", got)
	}
}

// accountNumber is that of the seeded account, as edges write it: little endian.
func (s *stack) accountNumber(t testing.TB) []byte {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.env["SLUICE_DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var id string
	key := into[struct {
		ID string `json:"key_id"`
	}](t, call(t, http.MethodGet, s.url("/v1/auth/validate"), s.dev["SLUICE_API_KEY"], nil)).ID
	if err := conn.QueryRow(t.Context(), `SELECT account_id FROM api_keys WHERE id = $1`, key).Scan(&id); err != nil {
		t.Fatal(err)
	}
	n := uint64(0)
	for _, c := range strings.TrimPrefix(id, "acct_") {
		n = n<<5 | uint64(strings.IndexRune("0123456789abcdefghjkmnpqrstvwxyz", c))
	}
	return binary.LittleEndian.AppendUint64(nil, n)
}
