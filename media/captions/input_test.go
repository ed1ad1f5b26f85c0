package captions

import (
	"strings"
	"testing"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

func TestWhichTracksAreTaken(t *testing.T) {
	t.Parallel()
	const vtt = "WEBVTT\n\n00:01.000 --> 00:02.000\nHi\n"
	cases := map[string]struct {
		in   Input
		want decision.Code
	}{
		"a language":           {Input{Language: "en"}, ""},
		"one with a script":    {Input{Language: "zh-Hant-TW", Content: vtt}, ""},
		"no language":          {Input{Label: "x"}, decision.InvalidRequest},
		"a name":               {Input{Language: "English"}, decision.InvalidRequest},
		"a path":               {Input{Language: "../en"}, decision.InvalidRequest},
		"another kind":         {Input{Language: "en", Kind: "chapters"}, decision.InvalidRequest},
		"a label too long":     {Input{Language: "en", Label: strings.Repeat("x", 101)}, decision.InvalidRequest},
		"SubRip":               {Input{Language: "en", Content: "1\n00:00:01,000 --> 00:00:02,000\nHi\n"}, decision.Storage002},
		"too large":            {Input{Language: "en", Content: strings.Repeat("x", MaxContent+1)}, decision.Storage001},
		"both":                 {Input{Language: "?", Content: "x"}, decision.InvalidRequest},
		"to be generated":      {Input{Language: "en", Generate: true}, ""},
		"generated, and there": {Input{Language: "en", Generate: true, Content: vtt}, decision.InvalidRequest},
		"generated, but wrong": {Input{Language: "?", Generate: true}, decision.InvalidRequest},
	}
	for name, c := range cases {
		if _, err := c.in.track(); apierror.Code(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestATrackHasDefaults(t *testing.T) {
	t.Parallel()
	got, err := Input{Language: "pt-BR", Content: "WEBVTT"}.track()
	if err != nil || got.Language != "pt-br" || got.Label != "pt-br" || got.Kind != "captions" || got.Cues != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}
