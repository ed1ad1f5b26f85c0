// Package playback serves streams to viewers: embed codes, signed tokens, a
// plain player page, and the engine's HLS behind a check of who may watch.
package playback

import (
	"context"
	"net/http"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/media/playback/signing"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// Bounds of a token's life, in seconds.
const (
	defaultTTL = 3600
	minTTL     = 10
	maxTTL     = 7 * 24 * 3600
)

// maxViewer bounds the name of a viewer, in characters.
const maxViewer = 200

// TokenInput is the body of POST /v1/streams/{id}/tokens; no body is an empty one.
type TokenInput struct {
	ExpiresIn *int   `json:"expires_in"` // seconds; absent: 3600
	Viewer    string `json:"viewer"`     // the caller's name for the viewer, counted as one
}

// TokenView is the answer.
type TokenView struct {
	Token      string    `json:"token"`
	StreamID   string    `json:"stream_id"`
	PlaybackID string    `json:"playback_id"`
	ExpiresAt  time.Time `json:"expires_at"`
	HLS        string    `json:"hls_url"`              // with the token
	DASH       string    `json:"dash_url"`             // with the token
	LowDASH    string    `json:"low_latency_dash_url"` // with the token
	MoQ        string    `json:"moq_url,omitempty"`    // with the token; absent where MoQ is off
	Embed      string    `json:"embed_url"`            // with the token
}

// token answers POST /v1/streams/{id}/tokens. A public stream gets one too: a
// player then need not know which streams are signed.
func (v Service) token(w http.ResponseWriter, r *http.Request) error {
	s, err := v.Streams.FromPath(r)
	if err != nil {
		return err
	}
	in, err := tokenInput(w, r)
	if err != nil {
		return err
	}
	key, err := v.Keys.Key(r.Context())
	if err != nil {
		return err
	}
	expires := v.Now().UTC().Truncate(time.Second).Add(time.Duration(*in.ExpiresIn) * time.Second)
	token, err := signing.Sign(key, signing.Grant{Use: signing.Playback, Subject: s.PlaybackID, Viewer: in.Viewer, Expires: expires})
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	moq := v.Streams.Endpoints.MoQ
	if moq != "" {
		moq += "/" + s.PlaybackID + "?token=" + token
	}
	httpapi.JSON(w, http.StatusCreated, TokenView{MoQ: moq, Token: token, StreamID: s.ID, PlaybackID: s.PlaybackID, ExpiresAt: expires, DASH: v.url(s, "index.mpd") + "?token=" + token,
		LowDASH: v.url(s, "low-latency.mpd") + "?token=" + token,
		HLS:     v.url(s, "index.m3u8") + "?token=" + token, Embed: v.url(s, "player") + "?token=" + token})
	return nil
}

// tokenInput reads the body, if there is one.
func tokenInput(w http.ResponseWriter, r *http.Request) (TokenInput, error) {
	ttl := defaultTTL
	in := TokenInput{ExpiresIn: &ttl}
	if r.ContentLength != 0 {
		if err := httpapi.Decode(w, r, bodyLimit, &in); err != nil {
			return in, err
		}
	}
	if in.ExpiresIn == nil {
		in.ExpiresIn = &ttl
	}
	var f form.Form
	f.Range("expires_in", *in.ExpiresIn, minTTL, maxTTL)
	if in.Viewer != "" {
		f.Text("viewer", in.Viewer, maxViewer)
	}
	return in, f.Err()
}

// Admit returns the stream with the playback id and what a bearer of token may: watch
// it, under the name in the grant and until the grant expires. A public stream admits
// everyone, without an end; a token that is sent along must hold all the
// same, so that a mistake is noticed.
func (v Service) Admit(ctx context.Context, playback, token string) (s streams.Stream, g signing.Grant, err error) {
	if !ident.Valid("play", playback) {
		return s, g, &apierror.Error{Code: decision.NotFound}
	}
	if s, err = streams.ByPlayback(ctx, v.DB, playback); err != nil {
		return s, g, err
	}
	if token == "" && s.PlaybackPolicy == "public" {
		return s, g, nil
	}
	if token == "" {
		return s, g, apierror.Errorf(decision.InvalidToken, "This stream asks its viewers for a token.")
	}
	key, err := v.Keys.Key(ctx)
	if err != nil {
		return s, g, err
	}
	g, err = signing.Verify(key, token, signing.Playback, s.PlaybackID, v.Now())
	return s, g, err
}
