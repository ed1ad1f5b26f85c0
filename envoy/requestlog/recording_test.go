package requestlog

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/filters/recording"
	"sluice.dev/sluice/platform/limits/growth"
)

// recorded are the records that have arrived, and how many requests they stand for.
func (c *control) recorded(t *testing.T) (list []recording.Request, seen [2]uint64, lost uint64) {
	t.Helper()
	for _, b := range c.batches() {
		for _, raw := range b.Recorded {
			block, ok := recording.Parse(raw)
			if !ok {
				t.Fatal("a block cannot be read")
			}
			list = append(list, block.Requests...)
			seen[0], seen[1], lost = seen[0]+block.Seen[0], seen[1]+block.Seen[1], lost+block.Lost
		}
	}
	return list, seen, lost
}

// All requests are recorded, whatever the request log has room for, and each with who
// called, what for and what the edge decided.
func TestEveryRequestIsRecordedForRehearsals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &control{}
		w, _ := started(t, c, 0)
		for range 5 {
			for range 60 {
				write(t, w, line("sa", "0e3f3c56-77d8-4d40-ac8f-b820db3331bb", 200, "v2;u=p;a=acct_1;k=key_1;p=pro;s=a:b,c:d;e=1"))
				write(t, w, line("sa", "0e3f3c56-77d8-4d40-ac8f-b820db3331bc", 403, "refused;c=AUTH_002;f=scope;a=acct_1;k=key_2;p=pro;s=a:b"))
			}
			time.Sleep(time.Second)
		}
		time.Sleep(blockEvery)
		list, seen, lost := c.recorded(t)
		if len(list) != 600 || seen != [2]uint64{300, 300} || lost != 0 {
			t.Fatalf("%d, seen %v, lost %d", len(list), seen, lost)
		}
		want := recording.Request{ID: list[1].ID, Time: time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC).UnixMilli(), Method: "GET", Path: "/v1/x", Route: "r", Account: "acct_1", Credential: "key_2",
			Scopes: "a:b", Code: "AUTH_002", Client: "192.0.2.1", Status: 403, In: 1, Out: 2}
		if list[1] != want || list[1].ID[15] != 0xbc || list[0].Code != "" || list[0].Scopes != "a:b,c:d" {
			t.Errorf("%+v", list[1])
		}
	})
}

// Beyond the rate there is a sample, and it is known what of.
func TestASampleSaysWhatOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &control{}
		w, _ := started(t, c, 0)
		w.Record.records.sampled = Sample{Success: 100_000, Failure: 1_000_000}
		for range 3000 {
			write(t, w, line("sa", "1", 200, "v2;u=p;a=acct_1;k=key_1"))
		}
		time.Sleep(blockEvery + time.Second)
		if list, seen, _ := c.recorded(t); len(list) != mostASecond || seen[0] != 30_000 {
			t.Errorf("%d stand for %v", len(list), seen)
		}
	})
}

// While the control plane is away records wait up to a bound; what went is told.
func TestRecordsThatWereLostAreTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &control{away: true}
		w, _ := started(t, c, 10)
		for range maxBlocks + 8 {
			write(t, w, line("sa", "1", 200, ""))
			time.Sleep(blockEvery + time.Second)
		}
		c.comeBack()
		write(t, w, line("sa", "1", 200, ""))
		time.Sleep(blockEvery + time.Second)
		if list, _, lost := c.recorded(t); len(list)+int(lost) != maxBlocks+9 || len(list) < maxBlocks {
			t.Errorf("%d arrived, %d are said to be lost", len(list), lost)
		}
	})
}

func TestNothingOfAPathWhereItMayNotBeKept(t *testing.T) {
	t.Parallel()
	_, rest, _ := marked([]byte(line("as", "1", 200, "")))
	if r, ok := record(rest, false); !ok || r.Path != "" || r.Route != "r" {
		t.Errorf("%+v %v", r, ok)
	}
	if r, ok := record([]byte(strings.Replace(string(rest), `/v1/x`, `/v1/\"x\\`, 1)), true); !ok || r.Path != `/v1/"x\` {
		t.Errorf("%+v %v", r, ok)
	}
	if _, ok := record([]byte(strings.Replace(string(rest), `"route":"r",`, ``, 1)), true); ok {
		t.Error("a request without a route is recorded")
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(line("sa", "1", 500, "v2;u=p;a=acct_1;k=key_1;p=pro;s=a:b,c:d;e=1")))
	f.Add([]byte(strings.Replace(line("aa", "2", 200, ""), "/v1/x", `/\u00e4\"`, 1)))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, rest, ok := marked(text)
		if !ok {
			return
		}
		growth.Linear(t, len(rest), 16, 4<<10, func() { record(rest, true) })
		if r, ok := record(rest, true); ok && (len(r.Path) > recording.MaxText || len(r.Scopes) > recording.MaxText || r.Route == "") {
			t.Errorf("%+v", r)
		}
	})
}
