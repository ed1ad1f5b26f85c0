package dashboard

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/platform/http/webpage"
	"sluice.dev/sluice/workers/schedules/product"
)

// mediaTime bounds how long a page waits for the media product.
const mediaTime = 5 * time.Second

// streamsPage are the streams of an account.
type streamsPage struct {
	Now     time.Time
	Streams []product.Stream
	Pager   pager
}

// asCaller is in whose name the media product is asked: the account, by the session.
func asCaller(v viewer, a accounts.Account) product.Caller {
	return product.Caller{Account: a.ID, Plan: a.Plan, Schedule: v.Session}
}

// showStreams shows the streams of an account.
func (s *site) showStreams(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.allowed(r, v, "streams:read")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), mediaTime)
	defer cancel()
	page := pageOf(r)
	list, err := s.Media.Streams(ctx, asCaller(v, a), page.Limit, page.Offset)
	if err != nil {
		return err
	}
	return s.showOf(w, r, v, a, "streams", "Streams", "/streams", streamsPage{s.Now(), list.Data, pagerOf(r, "/streams", page, len(list.Data), list.Pagination.Total)})
}

// streamPage is one stream, with its picture while it is live.
type streamPage struct {
	Stream product.Stream
	Player string // address of its player page; empty: it cannot be watched
	Live   bool   // the picture is shown
}

// showStream shows one stream. While it is live, and open to everybody, the player page of
// the gateway stands in a frame: this page alone may show one, of that address.
func (s *site) showStream(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.allowed(r, v, "streams:read")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), mediaTime)
	defer cancel()
	p := streamPage{}
	if p.Stream, err = s.Media.Stream(ctx, asCaller(v, a), chi.URLParam(r, "id")); err != nil {
		return err
	}
	own, origin := policy, ""
	if p.Player, origin = playerOf(p.Stream); p.Player != "" && p.Stream.Status == "live" {
		p.Live = true
		own = webpage.Allow{Files: true, Images: "'self'", Connect: "'self'", Forms: "'self'", Frames: origin}.Policy()
	}
	list, many, err := s.choice(r, v)
	if err != nil {
		return err
	}
	return s.write(w, r, v, a, "stream", p.Stream.Title, "/streams", p, func(x *view) { x.Choice, x.Many, x.Policy = list, many, own })
}

// playerOf is where the player page of a stream is, and the origin of that; empty for one
// that needs a token.
func playerOf(one product.Stream) (player, origin string) {
	u, err := url.Parse(one.Playback.HLS)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || one.PlaybackPolicy != "public" || !strings.HasSuffix(u.Path, "/index.m3u8") {
		return "", ""
	}
	origin = u.Scheme + "://" + u.Host
	if strings.ContainsAny(origin, " ;,") {
		return "", ""
	}
	return origin + strings.TrimSuffix(u.EscapedPath(), "index.m3u8") + "player", origin
}
