package media_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/live/engine/enginetest"
)

// With an engine that makes parts, a segment can be had while it grows, and is then the
// same as when it is complete; HLS and DASH are as they are without.
func TestLowLatencyDASH(t *testing.T) {
	t.Parallel()
	e := enginetest.StartWithParts(t)
	b := setup(t, func(c *media.Config) { c.EngineHLS, c.Now = e.HLS, time.Now })
	s := httptest.NewServer(b.handler)
	t.Cleanup(s.Close)
	b.now = time.Now()
	h := theatre{b, e, s.URL}
	show, hls, dash := h.broadcast(object{"playback_policy": "signed"}, slices.Concat(enginetest.Card, enginetest.Tone, enginetest.H264, enginetest.AAC)...)
	low := h.here(show.text("playback.low_latency_dash_url"))
	h.fetch(show.text("playback.low_latency_dash_url")).wantError(401, "invalid_token")
	token := h.do("POST", "/v1/streams/"+show.text("id")+"/tokens", object{}).want(201)
	signed := "?token=" + token.text("token")
	if token.text("low_latency_dash_url") != show.text("playback.low_latency_dash_url")+signed {
		t.Errorf("%s", token.raw)
	}
	list := h.playlistOf(strings.Replace(hls, "index", "video1_stream", 1) + signed)
	if list.PartInf != nil || list.PreloadHint != nil || list.ServerControl != nil || len(list.Parts) > 0 || len(list.Segments) == 0 || list.Segments[0].Gap || !strings.HasSuffix(list.Segments[0].URI, signed) {
		t.Errorf("%+v", list)
	}
	if plain := h.manifest(dash + signed); plain.Periods[0].AdaptationSets[0].Representations[0].SegmentTemplate.AvailabilityTimeComplete != nil {
		t.Error("the plain manifest is one of low latency")
	}
	m := h.manifest(low + signed)
	for _, set := range m.Periods[0].AdaptationSets {
		template := set.Representations[0].SegmentTemplate
		last := int(*template.StartNumber) - 1
		for _, s := range template.SegmentTimeline.S {
			last += s.R + 1
		}
		address := func(number int) string {
			return dash[:strings.LastIndexByte(dash, '/')+1] + strings.Replace(template.Media, "$Number$", strconv.Itoa(number), 1)
		}
		res, err := http.Get(address(last)) // the next one, which has not begun
		if err != nil {
			t.Fatal(err)
		}
		grown, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != 200 || res.ContentLength != -1 || res.Header.Get("Content-Type") != string(set.MimeType) {
			t.Errorf("%s: %d %v %s, %v", set.ContentType, res.StatusCode, res.ContentLength, res.Header.Get("Content-Type"), err)
		}
		if whole := h.wait(address(last)); whole != string(grown) || strings.Count(whole, "moof") < 2 {
			t.Errorf("%s: %d bytes while it grew, %d when it was whole, in %d parts", set.ContentType, len(grown), len(whole), strings.Count(whole, "moof"))
		}
	}
	prefix, _, _ := strings.Cut(list.Segments[0].URI, "_seg")
	if status, _ := h.load(dash[:strings.LastIndexByte(dash, '/')+1] + prefix + "_part99999.mp4" + signed); status != 404 {
		t.Errorf("a part that is to come: %d", status)
	}
	if shown := h.played(low+signed, "-t", "2"); strings.Count(shown, "\n0, ") < 20 || strings.Count(shown, "\n1, ") < 20 {
		t.Errorf("ffmpeg shows\n%s", shown)
	}
}
