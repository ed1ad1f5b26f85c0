package engine

import (
	"testing"
	"time"

	"sluice.dev/sluice/filters/decision"
)

func TestWhichPublishersAreClosed(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_800_000_000, 0)
	const limit = 1000 // kbit/s: 125,000 bytes a second
	cases := map[string]struct {
		tracks []string
		bytes  uint64
		after  time.Duration
		limit  int
		want   decision.Code
	}{
		"what encoders send":       {[]string{"H264", "MPEG-4 Audio"}, 1_250_000, 10 * time.Second, limit, ""},
		"a little over":            {[]string{"H264"}, 1_400_000, 10 * time.Second, limit, ""},
		"far over":                 {[]string{"H264"}, 1_500_000, 10 * time.Second, limit, decision.Stream002},
		"a burst at the start":     {[]string{"H264"}, 1_500_000, 9 * time.Second, limit, ""},
		"no limit":                 {[]string{"H264"}, 1 << 40, 10 * time.Second, 0, ""},
		"a codec of another time":  {[]string{"H264", "MPEG-1/2 Video"}, 0, 0, limit, decision.Stream005},
		"a counter that went back": {nil, 0, time.Minute, limit, ""},
	}
	for name, c := range cases {
		since := publisher{seen: start}
		if name == "a counter that went back" {
			since.bytes = 1 << 40
		}
		if got := violation(Path{Tracks: c.tracks, Received: c.bytes}, since, c.limit, start.Add(c.after)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestTheLowerLimitHolds(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]int{{0, 0, 0}, {0, 5, 5}, {3, 0, 3}, {3, 5, 3}, {7, 5, 5}} {
		if got := limitOf(c[0], c[1]); got != c[2] {
			t.Errorf("%v: %d", c, got)
		}
	}
}
