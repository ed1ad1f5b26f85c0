package assets

import (
	"testing"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/files/mp4"
)

var film = Stored{FileID: "file_1", Size: 1000, Info: mp4.Info{Format: "mp4", Duration: 60 * time.Second, Width: 1280, Height: 720, VideoCodec: "avc1", AudioCodec: "mp4a"}}

func ready() Asset {
	a := Asset{ID: "vod_1", Kind: VOD, Status: Processing, StreamID: "strm_1"}
	a.Complete(film)
	return a
}

func clip(start, end int64) Asset {
	return Asset{ID: "clip_1", Kind: Clip, Status: Processing, StartMS: start, EndMS: end}
}

func TestAnAssetTakesOverWhatItsFileSays(t *testing.T) {
	t.Parallel()
	a := ready()
	if a.Status != Ready || a.FileID != "file_1" || a.DurationMS != 60_000 || a.Resolution() != "1280x720" || a.FileSize != 1000 {
		t.Errorf("%+v", a)
	}
	if (Asset{}).Resolution() != "" {
		t.Error("sound has a resolution")
	}
}

func TestAClipFollowsItsSource(t *testing.T) {
	t.Parallel()
	failed, unknown := ready(), ready()
	failed.Fail(decision.Storage002, "no video")
	unknown.DurationMS = 0
	cases := map[string]struct {
		clip     Asset
		source   Asset
		want     Status
		duration int64
		code     decision.Code
	}{
		"a part":                   {clip(10_000, 25_500), ready(), Processing, 15_500, ""},
		"to the very end":          {clip(0, 60_000), ready(), Processing, 60_000, ""},
		"beyond the end":           {clip(0, 60_001), ready(), Failed, 0, decision.InvalidRequest},
		"of a file without length": {clip(0, 90_000), unknown, Processing, 90_000, ""},
		"of a source that failed":  {clip(0, 1000), failed, Failed, 0, decision.Storage002},
		"of one not there yet":     {clip(0, 1000), Asset{Status: InRecording}, Processing, 0, ""},
	}
	for name, c := range cases {
		c.clip.UpdateFrom(c.source)
		if c.clip.Status != c.want || c.clip.DurationMS != c.duration || c.clip.ErrorCode != c.code {
			t.Errorf("%s: %+v", name, c.clip)
		}
		if c.clip.uncut() != (c.duration > 0) {
			t.Errorf("%s: file %q", name, c.clip.FileID)
		}
	}
}

func TestAClipOfAFileOfItsOwnIsCutToo(t *testing.T) {
	t.Parallel()
	good, long := clip(1000, 3000), clip(0, 60_001)
	good.Complete(film)
	long.Complete(film)
	if !good.uncut() || good.DurationMS != 2000 || long.Status != Failed {
		t.Errorf("%+v\n%+v", good, long)
	}
	part := film
	part.FileID, part.Size, part.Info.Duration = "file_2", 100, 2100*time.Millisecond
	if good.cutTo(part); good.Status != Ready || !good.Cut || good.FileID != "file_2" || good.FileSize != 100 || good.DurationMS != 2100 {
		t.Errorf("%+v", good)
	}
}

func TestIDsTellTheirKind(t *testing.T) {
	t.Parallel()
	for kind, want := range map[Kind]string{VOD: "vod", Recording: "rec", Clip: "clip"} {
		if kind.Prefix() != want {
			t.Errorf("%s: %s", kind, kind.Prefix())
		}
	}
}
