// Package streams holds live streams: their fields, their life (state.go), their
// rows and their HTTP surface. Every query is bound to one owner; the streams of
// others do not exist for it.
package streams

import (
	"strings"
	"time"

	"sluice.dev/sluice/media/api/owner"
)

// Stream is one row of media_streams.
type Stream struct {
	ID             string            `db:"id"`
	Owner          string            `db:"owner"`
	Account        string            `db:"account"` // who hears of it
	Plan           string            `db:"plan"`    // of the owner, at the last change
	PlaybackID     string            `db:"playback_id"`
	KeyHash        []byte            `db:"key_hash"`
	KeyHint        string            `db:"key_hint"`
	Title          string            `db:"title"`
	Protocol       string            `db:"protocol"`
	Status         Status            `db:"status"`
	StartedFrom    Status            `db:"started_from"` // what it was before it was Starting; else empty
	PlaybackPolicy string            `db:"playback_policy"`
	Recording      bool              `db:"recording"`
	Quality        string            `db:"quality"`
	BitrateKbps    int               `db:"bitrate_kbps"`     // 0: not set
	Threshold      int               `db:"viewer_threshold"` // 0: none
	Metadata       map[string]string `db:"metadata"`
	Version        int64             `db:"version"`
	CreatedAt      time.Time         `db:"created_at"`
	UpdatedAt      time.Time         `db:"updated_at"`
}

// By is the stream's owner, for what happens without the owner being there.
func (s Stream) By() owner.Owner { return owner.Owner{ID: s.Owner, Account: s.Account, Plan: s.Plan} }

// Session is one broadcast of a stream, a row of media_sessions.
type Session struct {
	ID           string     `db:"id"`
	Owner        string     `db:"owner"`
	StreamID     string     `db:"stream_id"`
	StartedAt    time.Time  `db:"started_at"`
	EndedAt      *time.Time `db:"ended_at"`
	TotalViewers int        `db:"total_viewers"`
	PeakViewers  int        `db:"peak_viewers"`
	Engine       bool       `db:"engine"` // a publisher sends, or sent, in it
}

// Endpoints are the public addresses of the media engine, without a trailing
// slash. An empty one means that the engine does not speak that protocol here.
type Endpoints struct {
	RTMP   string // rtmp://host:1935/live
	SRT    string // srt://host:8890
	WebRTC string // https://gw.example/v1/ingest: the gateway hands WHIP on
	MoQ    string // https://host:4443/moq; empty: MoQ is off
	// MoQHashes are the SHA-256 of the certificates that MoQ shows now and next, for
	// players that know them by these alone. Nil: they are of an authority.
	MoQHashes func() []string
	// Playback is the address under which the gateway serves playback, such as
	// https://gw.example/play.
	Playback string
	// Available says whether an engine listens at the addresses above. Without
	// one the API works, and says so in ingest.available.
	Available bool
}

// View is a stream as callers see it.
type View struct {
	ID             string            `json:"id"`
	Title          string            `json:"title"`
	Protocol       string            `json:"protocol"`
	Status         Status            `json:"status"`
	Recording      RecordingView     `json:"recording"`
	Ingest         IngestView        `json:"ingest"`
	PlaybackID     string            `json:"playback_id"`
	PlaybackPolicy string            `json:"playback_policy"`
	Playback       PlaybackView      `json:"playback"`
	Settings       SettingsView      `json:"settings"`
	Threshold      *int              `json:"viewer_threshold"`
	Metadata       map[string]string `json:"metadata"`
	CreatedAt      time.Time         `json:"created_at"`
	UpdatedAt      time.Time         `json:"updated_at"`
}

// RecordingView is View.Recording.
type RecordingView struct {
	Enabled bool `json:"enabled"`
}

// IngestView says where to publish. A stream accepts only its own protocol
// (STREAM_001); the addresses of the others are shown because protocol can be
// changed while the stream is off air.
type IngestView struct {
	Available     bool         `json:"available"`
	StreamKeyHint string       `json:"stream_key_hint"` // last four letters
	RTMP          EndpointView `json:"rtmp"`
	SRT           EndpointView `json:"srt"`
	WebRTC        EndpointView `json:"webrtc"`
	MoQ           EndpointView `json:"moq,omitzero"` // absent where MoQ is off
}

// EndpointView is one address to publish to. StreamKey is present only in the
// answers that create a key: POST /v1/streams and POST /v1/streams/{id}/key.
type EndpointView struct {
	URL       string `json:"url"`
	StreamKey string `json:"stream_key,omitempty"`
}

// PlaybackView says where to watch.
type PlaybackView struct {
	HLS  string `json:"hls_url"`
	DASH string `json:"dash_url"`
	// LowDASH is the same as DASH where the engine makes no parts of segments.
	LowDASH string `json:"low_latency_dash_url"`
	WebRTC  string `json:"webrtc_url"`
	MoQ     string `json:"moq_url,omitempty"` // absent where MoQ is off
	// MoQHashes are what WebTransport wants as serverCertificateHashes, in hexadecimal
	// digits; absent where the certificate is of an authority.
	MoQHashes []string `json:"moq_certificate_hashes,omitempty"`
}

// SettingsView is what an encoder is asked for; null where nothing is asked.
type SettingsView struct {
	Quality *string `json:"quality"`
	Bitrate *string `json:"bitrate"` // such as 4500k
}

// ViewOf shows s. key is the text of its stream key where it was made just now,
// else empty.
func (e Endpoints) ViewOf(s Stream, key string) View {
	var threshold *int
	if s.Threshold > 0 {
		threshold = &s.Threshold
	}
	return View{
		ID: s.ID, Title: s.Title, Protocol: s.Protocol, Status: s.Status,
		Recording: RecordingView{s.Recording}, Ingest: e.ingest(s, key),
		PlaybackID: s.PlaybackID, PlaybackPolicy: s.PlaybackPolicy,
		Playback: e.playback(s),
		Settings: settingsOf(s), Threshold: threshold, Metadata: s.Metadata,
		CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC(),
	}
}

// playbackAt lists the ways to watch below base.
func playbackAt(base string) PlaybackView {
	return PlaybackView{HLS: base + "/index.m3u8", DASH: base + "/index.mpd", LowDASH: base + "/low-latency.mpd", WebRTC: base + "/whep"}
}

// playback says where to watch s.
func (e Endpoints) playback(s Stream) PlaybackView {
	v := playbackAt(e.Playback + "/" + s.PlaybackID)
	if e.MoQ == "" {
		return v
	}
	if v.MoQ = e.MoQ + "/" + s.PlaybackID; e.MoQHashes != nil {
		v.MoQHashes = e.MoQHashes()
	}
	return v
}

// ingest keeps the key out of every URL: encoders take it in a field of its own.
func (e Endpoints) ingest(s Stream, key string) IngestView {
	v := IngestView{Available: e.Available, StreamKeyHint: s.KeyHint,
		RTMP: EndpointView{URL: e.RTMP}, SRT: EndpointView{URL: e.SRT}, WebRTC: EndpointView{URL: e.WHIP(s)}, MoQ: EndpointView{URL: e.MoQ}}
	if key != "" {
		v.RTMP.StreamKey = s.PlaybackID + "?key=" + key
		v.SRT.StreamKey = "publish:live/" + s.PlaybackID + ":key:" + key
		v.WebRTC.StreamKey = key
		if e.MoQ != "" {
			v.MoQ.StreamKey = s.PlaybackID + "?key=" + key
		}
	}
	return v
}

// WHIP is where a WebRTC publisher of s begins.
func (e Endpoints) WHIP(s Stream) string {
	return e.WebRTC + "/ing" + strings.TrimPrefix(s.ID, "strm") + "/whip"
}

// endpoint is the address that stream.started names.
func (e Endpoints) endpoint(s Stream) string {
	v := e.ingest(s, "")
	return map[string]string{"rtmp": v.RTMP.URL, "srt": v.SRT.URL, "webrtc": v.WebRTC.URL, "moq": v.MoQ.URL}[s.Protocol]
}

// settingsOf shows the wishes for the encoder; those that nobody has are null.
func settingsOf(s Stream) SettingsView {
	var v SettingsView
	if s.Quality != "" {
		v.Quality = &s.Quality
	}
	if s.BitrateKbps > 0 {
		text := FormatBitrate(s.BitrateKbps)
		v.Bitrate = &text
	}
	return v
}
