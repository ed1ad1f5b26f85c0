package chapters

import (
	_ "embed"
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/media/transcribe"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/webpage"
)

// What stands below the address of an asset's bytes.
const (
	vttFile    = "chapters.vtt"
	playerFile = "player"
)

var (
	//go:embed player.html
	markup string
	//go:embed player.js
	script string
	//go:embed player.css
	style string
)

// playerPage may load the film, its chapters and captions, and nothing else. Any page may show it in a
// frame.
var playerPage = webpage.NewInline(markup, script, style, webpage.Allow{Media: "'self'", Connect: "'self'", Framed: true})

// PublicRoutes adds the addresses for players. They ask for no identity: the token in the
// URL, which is that of the film, opens one asset.
func (v Service) PublicRoutes(r chi.Router, a httpapi.Adapter) {
	r.Get("/v1/playback/files/{id}/"+vttFile, a.Handle(v.track))
	r.Get("/v1/playback/files/{id}/"+playerFile, a.Handle(v.player))
}

// track serves the chapters of an asset as WebVTT to whoever may watch it.
func (v Service) track(w http.ResponseWriter, r *http.Request) error {
	a, err := v.Assets.Opened(r)
	if err != nil {
		return err
	}
	w.Header().Set("Access-Control-Allow-Origin", "*") // players on any page; the token is the protection
	w.Header().Set("Cache-Control", "private, max-age=60")
	return v.writeVTT(w, r, a.ID)
}

// filmCaptions are the captions of a film in a language, at an address.
type filmCaptions struct{ Language, Address string }

// player serves a page that plays an asset, with its chapters beside it, and its captions
// among what the browser's controls offer.
func (v Service) player(w http.ResponseWriter, r *http.Request) error {
	a, err := v.Assets.Opened(r)
	if err != nil {
		return err
	}
	token := "?token=" + url.QueryEscape(r.URL.Query().Get("token"))
	languages, err := transcribe.Languages(r.Context(), v.Assets.DB, a.ID)
	if err != nil {
		return err
	}
	var said []filmCaptions
	for _, tag := range languages {
		said = append(said, filmCaptions{tag, "captions/" + tag + ".vtt" + token})
	}
	return playerPage.Write(w, a.Title, map[string]any{"Captions": said, "Title": a.Title, "Film": "../" + chi.URLParam(r, "id") + token + a.Fragment(), "Chapters": vttFile + token})
}
