package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sluice.dev/sluice/media/assets"
)

func TestWhichFileBelongsToWhichRecording(t *testing.T) {
	t.Parallel()
	at := func(minute int) job {
		return job{asset: assets.Asset{CreatedAt: time.Date(2026, 3, 1, 12, minute, 0, 0, time.UTC)}}
	}
	file := func(minute string) string { return "/rec/live/play_x/2026-03-01_12-" + minute + "-00-000001.mp4" }
	cases := map[string]struct {
		jobs  []job
		files []string
		want  []string
	}{
		"one each":                        {[]job{at(10), at(20)}, []string{file("05"), file("15")}, []string{file("05"), file("15")}},
		"a session that recorded nothing": {[]job{at(10), at(20)}, []string{file("05")}, []string{file("05"), ""}},
		"a file that nobody waits for":    {[]job{at(20)}, []string{file("05"), file("15")}, []string{file("15")}},
		"a file of the next session":      {[]job{at(10)}, []string{file("15")}, []string{""}},
		"no file":                         {[]job{at(10)}, nil, []string{""}},
		"a file that is no recording":     {[]job{at(10)}, []string{"/rec/live/play_x/notes.mp4", "/rec/x-y.mp4"}, []string{""}},
	}
	for name, c := range cases {
		if diff := cmp.Diff(c.want, match(c.jobs, c.files)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestTheTimeInAName(t *testing.T) {
	t.Parallel()
	got, ok := startOf("/x/2026-11-21_13-27-41-034567.mp4")
	if want := time.Date(2026, 11, 21, 13, 27, 41, 34567000, time.UTC); !ok || !got.Equal(want) {
		t.Errorf("%s %v", got, ok)
	}
}
