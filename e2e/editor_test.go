package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A film is uploaded, divided into chapters and cut into another one, by keys that may do no
// more, through the edge and the worker.
func TestAFilmIsEditedAndHasChapters(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	all := s.dev["SLUICE_API_KEY"]
	editor, _ := s.newKey(t, "editor:write", "editor:read")
	viewer, _ := s.newKey(t, "editor:read", "chapters:read")
	marks, _ := s.newKey(t, "chapters:write", "chapters:read")

	up := post(t, s.url("/v1/vod/upload?title=Card"), all, "video/mp4", bytes.NewReader(film(t)))
	wantStatus(t, up, http.StatusCreated)
	video := into[struct{ ID string }](t, up)

	timeline := map[string]any{"clips": []map[string]any{{"asset_id": video.ID, "out": 1.0},
		{"asset_id": video.ID, "in": 0.5, "transition": map[string]any{"type": "crossfade", "duration": 0.5}}},
		"overlays": []map[string]any{{"type": "text", "text": "Sluice", "y": 0.9}}}
	wantError(t, call(t, http.MethodPost, s.url("/v1/editor/renders"), viewer, map[string]any{"timeline": timeline}), 403, "AUTH_002")
	preview := call(t, http.MethodPost, s.url("/v1/editor/preview?time=0.75"), editor, map[string]any{"timeline": timeline})
	wantStatus(t, preview, http.StatusOK)
	if preview.Header.Get("Content-Type") != "image/jpeg" || !strings.HasPrefix(preview.body, "\xff\xd8") {
		t.Errorf("%s %q", preview.Header.Get("Content-Type"), preview.body[:4])
	}
	asked := call(t, http.MethodPost, s.url("/v1/editor/renders"), editor, map[string]any{"title": "Cut", "timeline": timeline})
	wantStatus(t, asked, http.StatusAccepted)
	type job struct {
		ID, Status string
		AssetID    *string `json:"asset_id"`
		Duration   float64
	}
	render := into[job](t, asked)
	wantError(t, call(t, http.MethodPost, s.url("/v1/editor/renders/"+render.ID+"/cancel"), viewer, nil), 403, "AUTH_002")

	found := call(t, http.MethodPost, s.url("/v1/chapters/detect"), marks, map[string]any{"asset_id": video.ID, "min_length": 1})
	wantStatus(t, found, http.StatusAccepted)
	wantStatus(t, call(t, http.MethodPost, s.url("/v1/chapters"), marks, map[string]any{"asset_id": video.ID, "title": "Second half", "start": 1.0}), http.StatusCreated)
	wantError(t, call(t, http.MethodPost, s.url("/v1/chapters"), viewer, map[string]any{"asset_id": video.ID, "title": "No", "start": 0.5}), 403, "AUTH_002")

	eventually(t, "the render is ready", func() error {
		render = into[job](t, call(t, http.MethodGet, s.url("/v1/editor/renders/"+render.ID), viewer, nil))
		if render.Status != "ready" {
			return fmt.Errorf("it is %s", render.Status)
		}
		return nil
	})
	made := call(t, http.MethodGet, s.url("/v1/vod/"+*render.AssetID), all, nil)
	wantStatus(t, made, http.StatusOK)
	if render.Duration != 2 || !strings.Contains(made.body, `"title":"Cut"`) {
		t.Errorf("%+v: %s", render, made.body)
	}
	type chapters struct {
		Data      []struct{ Title string }
		Detection struct{ Status string }
		VTT       string `json:"vtt_url"`
		Player    string `json:"player_url"`
	}
	var list chapters
	eventually(t, "chapters are found", func() error {
		list = into[chapters](t, call(t, http.MethodGet, s.url("/v1/chapters?asset_id="+video.ID), viewer, nil))
		if list.Detection.Status != "ready" || len(list.Data) != 2 {
			return fmt.Errorf("%+v", list)
		}
		return nil
	})
	if track := call(t, http.MethodGet, list.VTT, "", nil); track.StatusCode != http.StatusOK || !strings.Contains(track.body, "00:00:01.000 --> 00:00:02.000\nSecond half\n") {
		t.Errorf("%d %s", track.StatusCode, track.body)
	}
	if page := call(t, http.MethodGet, list.Player, "", nil); page.StatusCode != http.StatusOK || !strings.Contains(page.body, `<track kind="chapters"`) {
		t.Errorf("%d %s", page.StatusCode, page.body)
	}
}
