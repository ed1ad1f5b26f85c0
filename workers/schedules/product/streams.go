package product

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Stream is a live stream, as far as others than the product show it.
type Stream struct {
	ID             string    `json:"id"`
	Title          string    `json:"title"`
	Protocol       string    `json:"protocol"`
	Status         string    `json:"status"`
	PlaybackPolicy string    `json:"playback_policy"` // public, or signed: playback needs a token
	Recording      Recording `json:"recording"`
	Ingest         Ingest    `json:"ingest"`
	Playback       Playback  `json:"playback"`
	CreatedAt      time.Time `json:"created_at"`
}

// Recording says whether a stream is recorded.
type Recording struct {
	Enabled bool `json:"enabled"`
}

// Ingest says where a stream is published to.
type Ingest struct {
	Available bool   `json:"available"`
	KeyHint   string `json:"stream_key_hint"`
	RTMP      struct {
		URL string `json:"url"`
	} `json:"rtmp"`
	SRT struct {
		URL string `json:"url"`
	} `json:"srt"`
}

// Playback says where a stream is watched.
type Playback struct {
	HLS string `json:"hls_url"`
}

// StreamList is a part of the streams of an account, newest first.
type StreamList struct {
	Data       []Stream `json:"data"`
	Pagination struct {
		Total int `json:"total"`
	} `json:"pagination"`
}

// maxList bounds the answer with a list of streams, in bytes: 50 of them with the most
// labels that they may have.
const maxList = 4 << 20

// Streams lists an account's streams. Its errors and costs are those of Act, with at most
// 4 MiB of an answer.
func (c Client) Streams(ctx context.Context, by Caller, limit, offset int) (StreamList, error) {
	q := url.Values{"limit": {strconv.Itoa(limit)}, "offset": {strconv.Itoa(offset)}}
	return call[StreamList](ctx, c, by, http.MethodGet, "/v1/streams?"+q.Encode(), "streams:read", nil, maxList)
}

// Stream returns one stream of an account, or not_found. Its errors and costs are those of
// Act.
func (c Client) Stream(ctx context.Context, by Caller, id string) (Stream, error) {
	return call[Stream](ctx, c, by, http.MethodGet, "/v1/streams/"+url.PathEscape(id), "streams:read", nil, maxAnswer)
}
