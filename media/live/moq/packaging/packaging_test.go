package packaging_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/mpeg4audio"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/fmp4"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/mp4/codecs"
	"sluice.dev/sluice/media/live/moq/packaging"
	"sluice.dev/sluice/platform/limits/growth"
)

// Parameter sets of 320 by 180 pixels by x264.
var (
	sps = []byte{0x67, 0x42, 0xc0, 0x0c, 0xda, 0x05, 0x06, 0x7e, 0x7c, 0x04, 0x40, 0x00, 0x00, 0x03, 0x00, 0x40, 0x00, 0x00, 0x07, 0x83, 0xc5, 0x0a, 0xa8}
	pps = []byte{0x68, 0xce, 0x0f, 0xc8}
)

// tracks are a video and an audio track.
func tracks(t testing.TB) []packaging.Track {
	t.Helper()
	video, err := packaging.NewTrack("video", &codecs.H264{SPS: sps, PPS: pps}, 90000)
	if err != nil {
		t.Fatal(err)
	}
	audio, err := packaging.NewTrack("audio", &codecs.MPEG4Audio{Config: mpeg4audio.AudioSpecificConfig{Type: mpeg4audio.ObjectTypeAACLC, SampleRate: 48000, ChannelConfig: 2}}, 48000)
	if err != nil {
		t.Fatal(err)
	}
	return []packaging.Track{video, audio}
}

func TestBothCatalogsNameTheTracks(t *testing.T) {
	t.Parallel()
	catalogs, err := packaging.Catalogs(tracks(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		packaging.CatalogMSF:  {`"version":"draft-01"`, `"codec":"avc1.42c00c"`, `"width":320,"height":180`, `"packaging":"cmaf"`, `"codec":"mp4a.40.2"`, `"samplerate":48000,"channelConfig":"2"`},
		packaging.CatalogHang: {`"codec":"avc1.42c00c"`, `"codedWidth":320,"codedHeight":180`, `"kind":"cmaf"`, `"sampleRate":48000,"numberOfChannels":2`},
	} {
		for _, part := range want {
			if !bytes.Contains(catalogs[name], []byte(part)) {
				t.Errorf("%s lacks %s: %s", name, part, catalogs[name])
			}
		}
		got, err := packaging.ParseCatalog(catalogs[name])
		if err != nil || len(got) != 2 {
			t.Errorf("%s: %d tracks, %v", name, len(got), err)
			continue
		}
		for _, g := range got {
			if want := tracks(t)[map[string]int{"video": 0, "audio": 1}[g.Name]]; g.Scale != want.Scale || !bytes.Equal(g.Init, want.Init) {
				t.Errorf("%s: %s came back as %+v", name, want.Name, g)
			}
		}
	}
}

// A catalog as moq-dev's tools publish it names the header by a reference, and other
// packagings beside CMAF.
func TestCatalogsOfOthers(t *testing.T) {
	t.Parallel()
	video := base64.StdEncoding.EncodeToString(tracks(t)[0].Init)
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"by reference":       {`{"version":"draft-01","tracks":[{"name":"0.m4s","packaging":"cmaf","initRef":"i"}],"initDataList":[{"id":"i","type":"inline","data":"` + video + `"}]}`, 1},
		"in place":           {`{"version":1,"tracks":[{"name":"v","packaging":"cmaf","initData":"` + video + `"},{"name":"w","packaging":"cmaf","initData":"` + video + `"}]}`, 1},
		"hang":               {`{"video":{"renditions":{"v":{"container":{"kind":"cmaf","init":"` + video + `"}}}}}`, 1},
		"another packaging":  {`{"tracks":[{"name":"v","packaging":"loc"}]}`, 0},
		"no header":          {`{"tracks":[{"name":"v","packaging":"cmaf","initRef":"i"}]}`, 0},
		"no JSON":            {`catalog`, 0},
		"empty":              {`{}`, 0},
		"more than it bears": {`{"tracks":[` + strings.Repeat(`{},`, 40) + `{}]}`, 0},
		"too long":           {`{"x":"` + strings.Repeat("x", packaging.MaxCatalog) + `"}`, 0},
	} {
		got, err := packaging.ParseCatalog([]byte(c.text))
		if len(got) != c.want || (err != nil) != (c.want == 0) || err != nil && !errors.Is(err, packaging.ErrMedia) {
			t.Errorf("%s: %d tracks, %v", name, len(got), err)
		}
	}
}

func TestAFrameComesBackFromItsChunk(t *testing.T) {
	t.Parallel()
	unit, err := h264.AVCC{{0x65, 1, 2}}.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	chunk, err := packaging.Chunk(7, 90000, &fmp4.Sample{Duration: 3000, PTSOffset: 6000, Payload: unit})
	if err != nil {
		t.Fatal(err)
	}
	frames, err := packaging.ParseChunk(chunk)
	if err != nil || len(frames) != 1 || frames[0].Time != 96000 || !bytes.Equal(frames[0].Payload, unit) || !tracks(t)[0].Begins(frames[0]) {
		t.Errorf("%+v, %v", frames, err)
	}
	two := append(bytes.Clone(chunk), chunk...)
	if frames, err := packaging.ParseChunk(two); err != nil || len(frames) != 2 || !bytes.Equal(frames[1].Payload, unit) {
		t.Errorf("two fragments: %+v, %v", frames, err)
	}
	if tracks(t)[0].Begins(packaging.Frame{Payload: []byte{0, 0, 0, 1, 0x41}}) || !tracks(t)[1].Begins(packaging.Frame{}) {
		t.Error("a frame that needs others begins, or one of sound does not")
	}
	for name, raw := range map[string][]byte{"cut": chunk[:20], "text": []byte("no boxes at all, but text"), "a moov": tracks(t)[0].Init} {
		if frames, err := packaging.ParseChunk(raw); len(frames) > 0 || err != nil && !errors.Is(err, packaging.ErrMedia) {
			t.Errorf("%s: %d frames, %v", name, len(frames), err)
		}
	}
}

func FuzzParseCatalog(f *testing.F) {
	catalogs, err := packaging.Catalogs(tracks(f))
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range catalogs {
		f.Add(string(c))
	}
	f.Fuzz(func(t *testing.T, text string) {
		growth.Linear(t, len(text), 400, 1<<20, func() { _, _ = packaging.ParseCatalog([]byte(text)) })
		got, err := packaging.ParseCatalog([]byte(text))
		if err != nil {
			return
		}
		if _, err := packaging.Catalogs(got); err != nil {
			t.Errorf("what was taken cannot be described: %v", err)
		}
	})
}

func FuzzParseChunk(f *testing.F) {
	chunk, err := packaging.Chunk(7, 90000, &fmp4.Sample{Duration: 3000, Payload: []byte{0, 0, 0, 1, 0x65}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(chunk)
	f.Fuzz(func(t *testing.T, raw []byte) {
		growth.Linear(t, len(raw), 16, 64<<10, func() { _, _ = packaging.ParseChunk(raw) })
		frames, _ := packaging.ParseChunk(raw)
		for _, fr := range frames {
			for _, of := range []codecs.Codec{&codecs.H264{}, &codecs.H265{}} {
				packaging.Track{Codec: of}.Begins(fr)
			}
		}
	})
}

// FuzzParseTrack feeds CMAF headers, of which catalogs are full.
func FuzzParseTrack(f *testing.F) {
	for _, t := range tracks(f) {
		f.Add(t.Init)
	}
	f.Fuzz(func(t *testing.T, init []byte) {
		growth.Linear(t, len(init), 400, 1<<20, func() { _, _ = packaging.ParseTrack("x", init) })
	})
}
