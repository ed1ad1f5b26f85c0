package audit

import (
	"strings"
	"testing"
	"time"
)

func TestFailovers(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return time.UnixMilli(int64(100_000 + ms)) }
	seen := Seen{
		Faults: []Struck{{Kind: FailOver, Span: Span{at(0), at(400)}}, {Kind: "crash", Span: Span{at(5000), at(5000)}}, {Kind: FailOver, Span: Span{at(9000), at(9300)}}},
		Tries: []Try{
			{What: "POST /v1/streams", At: at(700), Status: 201},
			{What: "POST /v1/streams", At: at(-5), Status: 201},
			{What: "POST /v1/streams", At: at(100), Status: 503},
			{What: "POST /v1/auth/keys", At: at(200), Status: 201}, // the old primary's last
			{What: "GET /v1/streams", At: at(300), Status: 503},
			{What: Steady, At: at(250), Status: 204, Edge: "edge-1"},
			{What: Steady, At: at(260), Status: 204, Edge: "edge-2"},
			{What: Steady, At: at(800), Status: 204, Edge: "edge-2"},
			{What: "POST /v1/streams", At: at(9500), Status: 0},
		},
	}
	want := []Failover{
		{Promoted: 400 * time.Millisecond, Written: 700 * time.Millisecond, Refused: 1, Steady: 2},
		{Promoted: 300 * time.Millisecond, Refused: 1},
	}
	got := Failovers(seen)
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v, want %+v", got, want)
	}
	var out strings.Builder
	if err := PrintFailovers(&out, got); err != nil || !strings.Contains(out.String(), "0.70 s") || !strings.Contains(out.String(), "never") {
		t.Errorf("%v\n%s", err, &out)
	}
	lines := Drill(seen)
	if len(lines[0].Broken) != 0 || lines[0].Checked != 3 || len(lines[1].Broken) != 1 || lines[1].Checked != 2 {
		t.Errorf("%+v", lines)
	}
	for _, bad := range []Try{{What: Steady, Status: 503}, {What: Steady, Status: 429}, {What: Steady}, {What: Steady, Status: 401}} {
		if l := steady(Seen{Tries: []Try{bad}}); len(l.Broken) != 1 {
			t.Errorf("%+v is not found: %+v", bad, l)
		}
	}
}
