package playback

import (
	"bytes"
	"html/template"
	"net/http"
	"net/url"

	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/platform/http/httpapi"
)

// EmbedView is the answer of GET /v1/streams/{id}/embed.
type EmbedView struct {
	StreamID      string `json:"stream_id"`
	URL           string `json:"url"`  // of the player page
	HTML          string `json:"html"` // an iframe of it
	Width         int    `json:"width"`
	Height        int    `json:"height"`
	TokenRequired bool   `json:"token_required"` // add ?token=… to url: the stream is signed
}

// Bounds of the width and height of a player.
const minPixels, maxPixels = 64, 7680

// frame is the embed code. The template escapes what stands in it.
var frame = template.Must(template.New("frame").Parse(
	`<iframe src="{{.Src}}" title="{{.Title}}" width="{{.Width}}" height="{{.Height}}" style="border:0" ` +
		`allow="autoplay; fullscreen; picture-in-picture" allowfullscreen loading="lazy"></iframe>`))

// embed answers GET /v1/streams/{id}/embed. The token of a signed stream is not
// in the code: it would end sooner than the page it is pasted into.
func (v Service) embed(s streams.Stream, r *http.Request, _ httpapi.None) (EmbedView, error) {
	var f form.Form
	q := r.URL.Query()
	out := EmbedView{StreamID: s.ID, TokenRequired: s.PlaybackPolicy == "signed",
		Width: f.Number(q, "width", 640, minPixels, maxPixels), Height: f.Number(q, "height", 360, minPixels, maxPixels)}
	options := url.Values{}
	for _, name := range []string{"autoplay", "muted"} {
		if flag(&f, q, name) {
			options.Set(name, "true")
		}
	}
	if err := f.Err(); err != nil {
		return out, err
	}
	out.URL = v.url(s, "player")
	if len(options) > 0 {
		out.URL += "?" + options.Encode()
	}
	var html bytes.Buffer
	err := frame.Execute(&html, map[string]any{"Src": out.URL, "Title": s.Title, "Width": out.Width, "Height": out.Height})
	out.HTML = html.String()
	return out, err
}

// flag reads a boolean of the query.
func flag(f *form.Form, q url.Values, name string) bool {
	text := q.Get(name)
	if text != "" {
		f.OneOf(name, text, []string{"true", "false"})
	}
	return text == "true"
}
