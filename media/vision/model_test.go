package vision_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/jpeg"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sluice.dev/sluice/media/engines"
	"sluice.dev/sluice/media/vision"
)

func TestAModelLooks(t *testing.T) {
	t.Parallel()
	said := "Here it is:\n```json\n{\"description\": \"A sign.\", \"text\": \"STOP\", \"objects\": [{\"label\": \"sign\", \"count\": 2}, {\"label\": \"\"}]}\n```"
	var model, question string
	var shown image.Config
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/chat/completions" {
			return
		}
		var in struct {
			Model    string
			Messages []struct {
				Content []struct {
					Text     string
					ImageURL struct{ URL string } `json:"image_url"`
				}
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		model, question = in.Model, in.Messages[0].Content[0].Text
		raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(in.Messages[0].Content[1].ImageURL.URL, "data:image/jpeg;base64,"))
		if err == nil {
			shown, err = jpeg.DecodeConfig(bytes.NewReader(raw))
		}
		if err != nil {
			t.Error(err)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]any{"content": said}}}})
	}))
	defer api.Close()
	d := serve(t, engines.Setting{Use: engines.URL, URL: api.URL, Model: "sees"}, "", nil)
	r := d.see("?prompt=How+many+signs%3F", encoded(t, image.NewRGBA(image.Rect(0, 0, 3072, 200)), "png"))
	p := r.Pictures[0]
	if p.Description != "A sign." || p.Text.Text != "STOP" || len(p.Objects) != 1 || p.Objects[0] != (vision.Object{Label: "sign", Count: 2}) || p.Faces == nil || p.Colors[0].Hex != "#ffffff" {
		t.Errorf("%+v %+v", p, p.Text)
	}
	if model != "sees" || !strings.Contains(question, "How many signs?") || shown.Width != 1536 || shown.Height != 100 {
		t.Errorf("%s %s %+v", model, question, shown)
	}
	said = "A sign, without JSON."
	if p := d.see("?features=description", encoded(t, page(t, "STOP"), "jpeg")).Pictures[0]; p.Description != said || p.Text != nil {
		t.Errorf("%+v", p)
	}
	if strings.Contains(question, `"text"`) {
		t.Error("the model is asked for what nobody wants")
	}
}
