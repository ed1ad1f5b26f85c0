package media_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/files/ffmpeg/ffmpegtest"
	"sluice.dev/sluice/media/plans"
)

// cinema is a product with room for films, and a server of what it answers.
func cinema(t *testing.T) theatre {
	t.Helper()
	b := setup(t, withFFmpeg(t), func(c *media.Config) {
		c.Plans, c.Now = plans.Table{"": {FileBytes: 64 << 20, StorageBytes: 1 << 30}}, time.Now
	})
	b.now = time.Now()
	s := httptest.NewServer(b.handler)
	t.Cleanup(s.Close)
	return theatre{bundle: b, url: s.URL}
}

// filmOf has ffmpeg make a film of twelve seconds.
func filmOf(t *testing.T, args ...string) []byte {
	t.Helper()
	return written(t, slices.Concat([]string{"-f", "lavfi", "-i", "testsrc2=size=320x180:rate=15:duration=12", "-f", "lavfi", "-i", "sine=duration=12"}, args)...)
}

// rewritten is a film with the same pictures and sound in another file. (Of what it encodes
// at the same time ffmpeg interleaves the fragments as they come, and reads back now more
// and now fewer of the pictures.)
func rewritten(t *testing.T, film []byte, args ...string) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "film.mp4")
	if err := os.WriteFile(name, film, 0o600); err != nil {
		t.Fatal(err)
	}
	return written(t, slices.Concat([]string{"-i", name, "-c", "copy"}, args)...)
}

// written is the MP4 file that ffmpeg writes.
func written(t *testing.T, args ...string) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "film.mp4")
	all := slices.Concat([]string{"-nostdin", "-loglevel", "error"}, args, []string{name})
	if out, err := exec.Command(ffmpegtest.Tool(t).Binary, all...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	film, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return film
}

// decoded is what ffmpeg shows of an address: the checksum of each picture and of each
// moment of sound, in their order, by track.
func (h theatre) decoded(address string, tracks int) [][]string {
	h.t.Helper()
	out := make([][]string, tracks)
	for line := range strings.Lines(h.played(address)) {
		if field := strings.Split(line, ","); len(field) == 6 && len(field[0]) == 1 {
			n := int(field[0][0] - '0')
			out[n] = append(out[n], strings.TrimSpace(field[5]))
		}
	}
	return out
}

// A stored film is the same film by DASH, however its file is made.
func TestStoredFilmsPlayByDASH(t *testing.T) {
	t.Parallel()
	h := cinema(t)
	film := filmOf(t, "-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-pix_fmt", "yuv420p", "-g", "30", "-b:v", "300k", "-c:a", "aac")
	cases := map[string]struct {
		args   []string
		tracks int
	}{
		"with tables at the end":  {nil, 2},
		"with tables at the head": {[]string{"-movflags", "+faststart"}, 2},
		"in fragments":            {[]string{"-movflags", "+frag_keyframe+empty_moov+default_base_moof"}, 2},
		"in a recording's way":    {[]string{"-movflags", "+frag_every_frame+empty_moov+default_base_moof"}, 2},
		"pictures alone":          {[]string{"-an"}, 1},
		"sound alone":             {[]string{"-vn"}, 1},
	}
	plain := h.decoded(h.here(h.do("GET", "/v1/vod/"+h.uploadOf(film), nil).want(200).text("playback_url")), 2)
	for name, c := range cases {
		id := h.uploadOf(rewritten(t, film, c.args...))
		v := h.do("GET", "/v1/vod/"+id, nil).want(200)
		address := h.here(v.text("dash_url"))
		m := h.manifest(address)
		if len(m.Periods[0].AdaptationSets) != c.tracks || m.GetType() != "static" || time.Duration(*m.MediaPresentationDuration).Round(time.Second) != 12*time.Second {
			t.Errorf("%s: %s, %d tracks", name, m.MediaPresentationDuration, len(m.Periods[0].AdaptationSets))
		}
		got, want := h.decoded(address, c.tracks), plain[2-c.tracks:]
		if name == "pictures alone" {
			want = plain[:1]
		}
		for i := range want {
			if !similar(got[i], want[i]) {
				t.Errorf("%s: track %d has %d, want %d", name, i, len(got[i]), len(want[i]))
			}
		}
	}
}

// similar reports whether two tracks show the same but for the first and the last few
// moments: what of a block of sound lies before the start is shown or not, and ffmpeg
// ends when the first track of a manifest does.
func similar(got, want []string) bool {
	const edge = 4
	if len(want) < 100 || len(got) < len(want)-edge || len(got) > len(want)+edge {
		return false
	}
	return strings.Contains(strings.Join(want, " "), strings.Join(got[edge:len(got)-edge], " "))
}

// Tracks are served in ranges, to who may have the file, and to nobody else.
func TestTheTracksOfAFilm(t *testing.T) {
	t.Parallel()
	h := cinema(t)
	film := filmOf(t, "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "15", "-c:a", "aac")
	id := h.uploadOf(film)
	v := h.do("GET", "/v1/vod/"+id, nil).want(200)
	address := v.text("dash_url")
	m := h.manifest(h.here(address))
	rep := m.Periods[0].AdaptationSets[0].Representations[0]
	track := strings.Replace(address, address[strings.LastIndex(address, "/")+1:], string(rep.BaseURLs[0].Value), 1)
	whole := h.fetch(track).want(http.StatusOK)
	if whole.header.Get("Content-Type") != "video/mp4" || string(whole.raw[4:8]) != "ftyp" || len(whole.raw) >= len(film)+8192 {
		t.Errorf("%s, %d bytes of %d", whole.header, len(whole.raw), len(film))
	}
	part := h.fetch(track, "Range", "bytes="+rep.SegmentBase.IndexRange).want(http.StatusPartialContent)
	if string(part.raw[4:8]) != "sidx" || strings.Count(string(whole.raw), "moof") != 3 {
		t.Errorf("%q, %d fragments", part.raw[:16], strings.Count(string(whole.raw), "moof"))
	}
	last := h.fetch(track, "Range", "bytes=-100").want(http.StatusPartialContent)
	if string(last.raw) != string(whole.raw[len(whole.raw)-100:]) {
		t.Error("another end")
	}
	base := strings.Split(track, "?")[0]
	h.fetch(base).wantError(401, "invalid_token")
	h.fetch(strings.Replace(track, "track1", "track3", 1)).wantError(404, "not_found")
	other := h.do("GET", "/v1/vod/"+h.uploadOf(film), nil).want(200).text("dash_url")
	h.fetch(base+"?"+strings.Split(other, "?")[1]).wantError(401, "invalid_token")
	if n := h.do("GET", "/v1/analytics/views?interval=hour&asset_id="+id, nil); n.status == 200 && n.get("totals.views") != 1.0 {
		t.Errorf("%s", n.raw)
	}
}
