package assets

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/files/fetch"
	"sluice.dev/sluice/media/playback/signing"
	"sluice.dev/sluice/platform/apierror"
)

func TestWhichFailuresAreFinalAndWhatTheOwnerSees(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		err     error
		final   bool
		code    decision.Code
		message string
	}{
		"a source that is gone":   {&fetch.Error{Message: "Gone.", Permanent: true}, true, decision.BadGateway, "Gone."},
		"a source that is down":   {&fetch.Error{Message: "Down."}, false, decision.BadGateway, "Down."},
		"too large":               {apierror.Errorf(decision.Storage001, "Large."), true, decision.Storage001, "Large."},
		"no video":                {apierror.Errorf(decision.Storage002, "Text."), true, decision.Storage002, "Text."},
		"a database that is away": {&apierror.Error{Code: decision.Unavailable, Message: "Away."}, false, decision.Unavailable, "Away."},
		"something of ours":       {errors.New("password=hunter2"), false, decision.Internal, decision.Lookup(decision.Internal).Message},
	}
	for name, c := range cases {
		for _, err := range []error{c.err, errors.Join(c.err, nil)} {
			code, message := reason(err)
			if final(err) != c.final || code != c.code || message != c.message {
				t.Errorf("%s: final %v, %s %s", name, final(err), code, message)
			}
		}
	}
}

func TestTheAddressOfAnAssetOpensItAndNothingElse(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_800_000_000, 0)
	key := []byte("0123456789abcdef0123456789abcdef")
	v := Service{Playback: "https://gw/v1/playback", Now: func() time.Time { return at }}
	link := v.link(Asset{ID: "clip_1", Kind: Clip, StartMS: 1500, EndMS: 62_000}, key, time.Minute)
	rest, ok := strings.CutPrefix(link, "https://gw/v1/playback/files/clip_1?token=")
	token, fragment, _ := strings.Cut(rest, "#")
	if !ok || fragment != "t=1.5,62" {
		t.Error(link)
	}
	if _, err := signing.Verify(key, token, signing.Download, "clip_1", at.Add(59*time.Second)); err != nil {
		t.Error(err)
	}
	if _, err := signing.Verify(key, token, signing.Download, "clip_2", at); err == nil {
		t.Error("it opens another asset")
	}
	if _, err := signing.Verify(key, token, signing.Playback, "clip_1", at); err == nil {
		t.Error("it opens a stream")
	}
	if _, err := signing.Verify(key, token, signing.Download, "clip_1", at.Add(time.Minute)); apierror.Code(err) != decision.TokenExpired {
		t.Error(err)
	}
}

func TestWhatIsShownOfAnAsset(t *testing.T) {
	t.Parallel()
	v := Service{Playback: "https://gw", Now: time.Now}
	fresh := v.view(Asset{ID: "vod_1", Kind: VOD, Status: Processing}, nil)
	if fresh.PlaybackURL != nil || fresh.Duration != nil || fresh.FileSize != nil || fresh.Error != nil || fresh.Start != nil || fresh.StreamID != nil {
		t.Errorf("%+v", fresh)
	}
	failed := v.view(Asset{Status: Failed, ErrorCode: decision.Storage002, ErrorMessage: "Text."}, nil)
	if failed.Error.Code != decision.Storage002 || failed.Error.Message != "Text." || failed.PlaybackURL != nil {
		t.Errorf("%+v", failed)
	}
	clip := v.view(Asset{Kind: Clip, Status: Ready, StartMS: 0, EndMS: 1500, DurationMS: 1500, SourceID: "vod_1"}, []byte("k"))
	if *clip.Start != 0 || *clip.End != 1.5 || *clip.Duration != 1.5 || *clip.SourceID != "vod_1" || clip.PlaybackURL == nil || clip.State != clip.Status {
		t.Errorf("%+v", clip)
	}
}
