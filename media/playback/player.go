package playback

import (
	_ "embed"
	"net/http"
	"net/url"

	"sluice.dev/sluice/platform/http/webpage"
)

var (
	//go:embed player.html
	playerMarkup string
	//go:embed player.js
	playerScript string
	//go:embed player.css
	playerStyle string
)

// playerPage may load the stream, and nothing else. Any page may show it in a frame: that
// is what embed codes are for.
var playerPage = webpage.NewInline(playerMarkup, playerScript, playerStyle, webpage.Allow{Media: "'self' blob:", Connect: "'self'", Framed: true})

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
	return playerPage.Write(w, s.Title, map[string]any{
		"Title": s.Title, "HLS": "index.m3u8" + query, "WHEP": "whep" + query,
		"Autoplay": q.Get("autoplay") == "true", "Muted": q.Get("muted") == "true",
	})
}
