package media_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/files/ffmpeg/ffmpegtest"
)

func TestChaptersOfAllAssetsHaveOneDoor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	film, other := b.upload(), b.upload() // of 60 seconds
	made := b.do("POST", "/v1/chapters", object{"asset_id": film, "title": "Rolling", "start": 20.5}).want(201)
	if made.text("asset_id") != film || made.text("source") != "set" || made.get("end") != 60.0 {
		t.Errorf("%s", made.raw)
	}
	b.do("POST", "/v1/vod/"+film+"/chapters", object{"title": "Intro & <all>", "start": 0}).want(201)
	b.do("POST", "/v1/chapters", object{"asset_id": other, "title": "Else", "start": 1}).want(201)
	one := "/v1/chapters/" + made.text("id")
	if got := b.do("GET", one, nil).want(200); got.text("title") != "Rolling" {
		t.Errorf("%s", got.raw)
	}
	got := b.do("GET", "/v1/chapters?asset_id="+film, nil).want(200)
	if got.text("data.0.title") != "Intro & <all>" || got.get("data.0.end") != 20.5 || got.get("data.2") != nil || got.get("pagination.total") != 2.0 || got.get("detection") != nil {
		t.Errorf("%s", got.raw)
	}
	track := b.fetch(got.text("vtt_url")).want(200)
	if !strings.Contains(string(track.raw), "00:00:00.000 --> 00:00:20.500\nIntro &amp; &lt;all&gt;\n") || track.header.Get("Content-Type") != "text/vtt; charset=utf-8" {
		t.Errorf("%s", track.raw)
	}
	if vtt := b.do("GET", "/v1/chapters?format=vtt&asset_id="+film, nil).want(200); string(vtt.raw) != string(track.raw) {
		t.Errorf("%s", vtt.raw)
	}
	if _, err := b.pool.Exec(t.Context(), `INSERT INTO media_transcripts SELECT 'trns_' || l, $1, 'acct_1', 'acct_1', l, s, 0, 'x', 1, 'test', '', '', now(), now()
		FROM (VALUES ('en', 'ready'), ('de', 'ready'), ('fr', 'processing')) AS made (l, s)`, film); err != nil {
		t.Fatal(err)
	}
	page := string(b.fetch(got.text("player_url")).want(200).raw)
	if de := strings.Index(page, `<track kind="captions" src="captions/de.vtt?token=`); de < 0 || de > strings.Index(page, `<track kind="captions" src="captions/en.vtt?token=`) || strings.Contains(page, "captions/fr.vtt") {
		t.Error(page)
	}
	if !strings.Contains(page, `<track kind="chapters" src="chapters.vtt?token=`) || !strings.Contains(page, `src="../`+film+`?token=`) {
		t.Error(page)
	}
	b.fetch(strings.Replace(got.text("vtt_url"), "token=", "token=x", 1)).wantError(401, "invalid_token")
	b.fetch(strings.Replace(got.text("vtt_url"), film, other, 1)).wantError(401, "invalid_token")
	if l := b.do("GET", "/v1/chapters?limit=2", nil).want(200); l.get("pagination.total") != 3.0 || l.get("pagination.has_more") != true || l.get("data.2") != nil {
		t.Errorf("%s", l.raw)
	} else if rest := b.do("GET", "/v1/chapters?cursor="+l.text("pagination.next_cursor"), nil).want(200); rest.get("data.0") == nil || rest.get("data.1") != nil {
		t.Errorf("%s", rest.raw)
	}
	if got := b.do("PATCH", one, object{"title": "Rolled", "start": 30}).want(200); got.text("title") != "Rolled" || got.get("start") != 30.0 {
		t.Errorf("%s", got.raw)
	}
	if got := b.do("PATCH", one, object{"title": "Again"}).want(200); got.text("title") != "Again" || got.get("start") != 30.0 {
		t.Errorf("%s", got.raw)
	}
	b.do("PATCH", one, object{"start": 0}).wantError(409, "conflict")
	b.do("PATCH", one, object{"title": "", "start": 61}).wantError(400, "invalid_request", "title", "start")
	b.do("PATCH", one, object{"ttl": 1}).wantError(400, "invalid_request", "ttl")
	b.do("POST", "/v1/chapters", object{"title": ""}).wantError(400, "invalid_request", "title", "asset_id")
	b.do("POST", "/v1/chapters", object{"asset_id": film}).wantError(400, "invalid_request", "title", "start")
	b.do("POST", "/v1/chapters", object{"asset_id": "vod_none", "title": "x", "start": 1}).wantError(404, "not_found")
	b.do("GET", "/v1/chapters?format=srt", nil).wantError(400, "invalid_request", "format")
	b.do("GET", "/v1/chapters?format=vtt", nil).wantError(400, "invalid_request", "asset_id")
	b.do("POST", "/v1/chapters/detect", object{"asset_id": film}).wantError(501, "not_implemented")
	for _, method := range []string{"GET", "DELETE"} {
		b.as(otherAccount, method, one, nil).wantError(404, "not_found")
	}
	b.as(otherAccount, "PATCH", one, object{"title": "Mine"}).wantError(404, "not_found")
	b.as(otherAccount, "GET", "/v1/chapters?asset_id="+film, nil).wantError(404, "not_found")
	b.as(otherAccount, "POST", "/v1/chapters", object{"asset_id": film, "title": "x", "start": 1}).wantError(404, "not_found")
	b.do("DELETE", one, nil).want(204)
	b.do("DELETE", one, nil).wantError(404, "not_found")
}

// parted is a film of ten seconds: red and blue with a silence between them at three
// seconds, then black from six to seven, then lime. With captions it has a text track.
func parted(t *testing.T, captions string) []byte {
	t.Helper()
	args := []string{"-f", "lavfi", "-i", "color=red:s=160x120:r=30:d=3", "-f", "lavfi", "-i", "color=blue:s=160x120:r=30:d=3", "-f", "lavfi", "-i", "color=black:s=160x120:r=30:d=1",
		"-f", "lavfi", "-i", "color=lime:s=160x120:r=30:d=3", "-f", "lavfi", "-i", "sine=d=2.5", "-f", "lavfi", "-i", "anullsrc=r=44100:cl=mono:d=1", "-f", "lavfi", "-i", "sine=d=6.5"}
	maps := []string{"-filter_complex", "[0][1][2][3]concat=n=4:v=1:a=0[v];[4][5][6]concat=n=3:v=0:a=1[a]", "-map", "[v]", "-map", "[a]", "-pix_fmt", "yuv420p", "-c:a", "aac"}
	if captions != "" {
		name := filepath.Join(t.TempDir(), "captions.vtt")
		if err := os.WriteFile(name, []byte(captions), 0o600); err != nil {
			t.Fatal(err)
		}
		args, maps = append(args, "-i", name), append(maps, "-map", "7:s", "-c:s", "mov_text")
	}
	return ffmpegtest.Make(t, append(args, maps...)...)
}

func TestChaptersAreFound(t *testing.T) {
	t.Parallel()
	b := setup(t, withFFmpeg(t))
	id := b.uploadOf(parted(t, ""))
	all := "/v1/chapters?asset_id=" + id
	if got := b.do("POST", "/v1/chapters/detect", object{"asset_id": id, "min_length": 2}).want(202); got.text("status") != "processing" {
		t.Errorf("%s", got.raw)
	}
	b.do("POST", "/v1/chapters/detect", object{"asset_id": id}).wantError(409, "conflict")
	b.work(1)
	got := b.do("GET", all, nil).want(200)
	if got.text("detection.status") != "ready" || got.get("data.0.start") != 0.0 || got.get("data.1.start") != 3.0 || got.get("data.2.start") != 7.0 || got.get("data.3") != nil {
		t.Fatalf("%s", got.raw)
	}
	if got.text("data.1.title") != "Chapter 2" || got.text("data.1.source") != "detected" {
		t.Errorf("%s", got.raw)
	}
	// What people have changed or set stays when chapters are looked for again.
	b.do("PATCH", "/v1/chapters/"+got.text("data.1.id"), object{"title": "Blue"}).want(200)
	b.do("POST", "/v1/chapters", object{"asset_id": id, "title": "Late", "start": 9}).want(201)
	b.do("POST", "/v1/chapters/detect", object{"asset_id": id, "min_length": 2}).want(202)
	b.work(1)
	got = b.do("GET", all, nil).want(200)
	if got.text("data.1.title") != "Blue" || got.text("data.1.source") != "set" || got.text("data.2.source") != "detected" || got.text("data.3.title") != "Late" || got.get("data.4") != nil {
		t.Errorf("%s", got.raw)
	}
	b.do("POST", "/v1/chapters/detect", object{"min_length": 0.5}).wantError(400, "invalid_request", "asset_id", "min_length")
	b.as(otherAccount, "POST", "/v1/chapters/detect", object{"asset_id": id}).wantError(404, "not_found")
}

func TestChaptersAreNamedByCaptions(t *testing.T) {
	t.Parallel()
	b := setup(t, withFFmpeg(t))
	id := b.uploadOf(parted(t, "WEBVTT\n\n00:00.100 --> 00:02.000\nWelcome.\n\n00:03.100 --> 00:05.000\nThis is <i>blue</i>. And more\n\n00:07.200 --> 00:09.000\nThe end\n"))
	b.do("POST", "/v1/chapters/detect", object{"asset_id": id, "min_length": 2}).want(202)
	b.work(1)
	got := b.do("GET", "/v1/chapters?asset_id="+id, nil).want(200)
	if got.text("data.0.title") != "Welcome" || got.text("data.1.title") != "This is blue" || got.text("data.2.title") != "The end" {
		t.Errorf("%s", got.raw)
	}
}

func TestASearchForChaptersThatNobodyWorksOnFails(t *testing.T) {
	t.Parallel()
	b := setup(t, withFFmpeg(t), func(c *media.Config) { c.OwnerLimit = 1 })
	film := ffmpegtest.Plain(t, "red", 2, 320, 240, 0)
	id := b.uploadOf(film)
	b.do("POST", "/v1/chapters/detect", object{"asset_id": id}).want(202)
	b.do("POST", "/v1/chapters/detect", object{"asset_id": b.uploadOf(film)}).wantError(503, "TRANSCODE_001")
	if _, err := b.pool.Exec(t.Context(), `DELETE FROM river_job`); err != nil {
		t.Fatal(err)
	}
	media.NewUpkeep(b.config).Round(t.Context())
	if got := b.do("GET", "/v1/chapters?asset_id="+id, nil).want(200); got.text("detection.status") != "failed" || got.text("detection.error.code") != "internal" {
		t.Errorf("%s", got.raw)
	}
	b.do("POST", "/v1/chapters/detect", object{"asset_id": id}).want(202)
	b.do("DELETE", "/v1/vod/"+id, nil).want(204)
	b.work(1)
}

// A recording without a text track has the captions of its stream.
func TestChaptersAreNamedByTheCaptionsOfAStream(t *testing.T) {
	t.Parallel()
	b := setup(t, withFFmpeg(t))
	id := b.uploadOf(parted(t, ""))
	stream := b.do("POST", "/v1/streams", object{"title": "Show"}).want(201).text("id")
	b.do("POST", "/v1/streams/"+stream+"/captions", object{"language": "en", "content": "WEBVTT\n\n00:02.900 --> 00:05.000\nBlue now\n"}).want(201)
	if _, err := b.pool.Exec(t.Context(), `UPDATE media_assets SET stream_id = $1 WHERE id = $2`, stream, id); err != nil {
		t.Fatal(err)
	}
	b.do("POST", "/v1/chapters/detect", object{"asset_id": id, "min_length": 2}).want(202)
	b.work(1)
	if got := b.do("GET", "/v1/chapters?asset_id="+id, nil).want(200); got.text("data.0.title") != "Chapter 1" || got.text("data.1.title") != "Blue now" {
		t.Errorf("%s", got.raw)
	}
}
