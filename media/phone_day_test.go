package media_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/phone"
	"sluice.dev/sluice/media/plans"
)

// However many calls an account asks for at once, as many are stored as its plan allows in
// a day, and the next day as many again.
func TestCallsOutAreBoundByTheDay(t *testing.T) {
	t.Parallel()
	const most = 3
	b := setup(t, func(c *media.Config) {
		c.Phone = phone.Settings{Available: true, Trunk: "trunk.example:5060", Prefixes: []string{"+49"}}
		c.Plans = plans.Table{"": {CallsPerDay: most}, "quiet": {CallsPerDay: -1}}
	})
	call := func(caller identityheader.Caller, wait *sync.WaitGroup, into *answer) {
		stream := b.as(caller, "POST", "/v1/streams", object{"title": "show"}).want(201).text("id")
		line := b.as(caller, "POST", "/v1/phone/lines", object{"stream_id": stream, "auth": "allowlist", "allowlist": []string{"192.0.2.1"}}).want(201).text("id")
		wait.Go(func() {
			*into = b.as(caller, "POST", "/v1/phone/calls", object{"line_id": line, "to": "+493012345678"})
		})
	}
	us := identityheader.Caller{Account: "acct_1", Key: "key_1"}
	day := func() (stored int) {
		var wait sync.WaitGroup
		answers := make([]answer, 2*most)
		for i := range answers {
			call(us, &wait, &answers[i])
		}
		wait.Wait()
		for _, a := range answers {
			if a.status == http.StatusCreated {
				stored++
			} else if a.wantError(403, "BILLING_002"); !strings.Contains(a.text("error.message"), b.now.Truncate(24*time.Hour).Add(24*time.Hour).Format(time.RFC3339)) {
				t.Errorf("%s", a.raw)
			}
		}
		return stored
	}
	if n := day(); n != most {
		t.Errorf("%d calls in a day, want %d", n, most)
	}
	b.now = b.now.Truncate(24 * time.Hour).Add(24*time.Hour - time.Second)
	if n := day(); n != 0 {
		t.Errorf("%d more calls before midnight", n)
	}
	b.now = b.now.Add(time.Second)
	if n := day(); n != most {
		t.Errorf("%d calls on the next day, want %d", n, most)
	}
	for status, caller := range map[int]identityheader.Caller{201: otherAccount, 403: {Account: "acct_3", Key: "key_3", Plan: "quiet"}} {
		var wait sync.WaitGroup
		var got answer
		call(caller, &wait, &got)
		wait.Wait()
		got.want(status)
	}
}
