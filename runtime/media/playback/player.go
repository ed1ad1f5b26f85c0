package playback

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"net/url"
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
var playerPolicy = "default-src 'none'; media-src 'self' blob:; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'" +
	"; script-src 'sha256-" + digest(playerScript) + "'; style-src 'sha256-" + digest(playerStyle) + "'"

// digest is a source's hash as the policy writes it.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.StdEncoding.EncodeToString(sum[:])
}

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
	// The page is made whole first: a half page has no error status.
	var html bytes.Buffer
	err = playerTemplate.Execute(&html, map[string]any{
		"Title": s.Title, "HLS": "index.m3u8" + query, "WHEP": "whep" + query,
		"Autoplay": q.Get("autoplay") == "true", "Muted": q.Get("muted") == "true",
		"Script": template.JS(playerScript), "Style": template.CSS(playerStyle), // ours, from files of the binary
	})
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", playerPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	_, err = w.Write(html.Bytes())
	return err
}
