package playback

import (
	_ "embed"
	"html/template"
	"net/http"
	"net/url"

	"sluice.dev/sluice/platform/http/webpage"
)

var (
	//go:embed player.html
	playerPage string
	//go:embed player.js
	playerScript string
	//go:embed player.css
	playerStyle string

	playerTemplate = template.Must(template.New("player").Parse(playerPage))
)

// playerPolicy lets the page run its own script and style, and load the stream, and
// nothing else. Any page may show it in a frame: that is what embed codes are for.
var playerPolicy = webpage.Allow{Scripts: []string{playerScript}, Styles: []string{playerStyle}, Media: "'self' blob:", Connect: "'self'", Framed: true}.Policy()

// player serves the page that embed codes show. A signed stream's page wants the
// token, and hands it on to the stream.
func (v Service) player(w http.ResponseWriter, r *http.Request) error {
	s, _, err := v.Watch(r)
	if err != nil {
		return err
	}
	q, query := r.URL.Query(), ""
	if token := q.Get("token"); token != "" {
		query = "?token=" + url.QueryEscape(token)
	}
	return webpage.Write(w, playerTemplate, "player", map[string]any{
		"Title": s.Title, "HLS": "index.m3u8" + query, "WHEP": "whep" + query,
		"Autoplay": q.Get("autoplay") == "true", "Muted": q.Get("muted") == "true",
		"Script": template.JS(playerScript), "Style": template.CSS(playerStyle), // ours, from files of the binary
	}, webpage.Answer{Policy: playerPolicy})
}
