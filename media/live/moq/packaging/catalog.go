package packaging

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// MaxCatalog bounds a catalog, in bytes. Lists of nothing take 250 bytes of memory for
// each of theirs while they are read.
const MaxCatalog = 64 << 10

// maxTracks bounds the tracks of a catalog.
const maxTracks = 32

// msfVersion is the version of the catalog of MSF that is written.
const msfVersion = "draft-01"

// The names of the tracks that hold catalogs.
const (
	// CatalogMSF is that of draft-ietf-moq-msf-01, with CMAF as draft-ietf-moq-cmsf has
	// it.
	CatalogMSF = "catalog"
	// CatalogHang is that of the players and tools of moq-dev.
	CatalogHang = "catalog.json"
)

// The fields of both catalogs that are written and read here.
type (
	msf struct {
		Tracks   []msfTrack `json:"tracks"`
		InitData []msfInit  `json:"initDataList"`
	}
	msfInit struct {
		ID   string `json:"id"`
		Type string `json:"type"`
		Data string `json:"data"`
	}
	msfTrack struct {
		Name        string `json:"name"`
		Packaging   string `json:"packaging"`
		IsLive      bool   `json:"isLive"`
		Role        string `json:"role,omitempty"`
		RenderGroup int    `json:"renderGroup"`
		Codec       string `json:"codec"`
		Timescale   uint32 `json:"timescale"`
		InitRef     string `json:"initRef,omitempty"`
		InitData    string `json:"initData,omitempty"` // in the place of InitRef, before draft 01
		Width       int    `json:"width,omitempty"`
		Height      int    `json:"height,omitempty"`
		SampleRate  int    `json:"samplerate,omitempty"`
		Channels    string `json:"channelConfig,omitempty"`
	}
	hang struct {
		Video *hangKind `json:"video,omitempty"`
		Audio *hangKind `json:"audio,omitempty"`
	}
	hangKind struct {
		Renditions map[string]hangTrack `json:"renditions"`
	}
	hangTrack struct {
		Codec      string        `json:"codec"`
		Container  hangContainer `json:"container"`
		Width      int           `json:"codedWidth,omitempty"`
		Height     int           `json:"codedHeight,omitempty"`
		SampleRate int           `json:"sampleRate,omitempty"`
		Channels   int           `json:"numberOfChannels,omitempty"`
	}
	hangContainer struct {
		Kind string `json:"kind"`
		Init string `json:"init,omitempty"`
	}
)

// Catalogs are both catalogs of tracks, by the names of their tracks.
func Catalogs(tracks []Track) (map[string][]byte, error) {
	var m msf
	var h hang
	for _, t := range tracks {
		codec, err := t.codec()
		if err != nil {
			return nil, err
		}
		init := base64.StdEncoding.EncodeToString(t.Init)
		width, height := t.size()
		rate, channels := t.sound()
		row := msfTrack{Name: t.Name, Packaging: "cmaf", IsLive: true, Role: "audio", RenderGroup: 1, Codec: codec, Timescale: t.Scale,
			InitRef: t.Name, Width: width, Height: height, SampleRate: rate}
		kind := &h.Audio
		if t.Codec.IsVideo() {
			row.Role, kind = "video", &h.Video
		} else {
			row.Channels = fmt.Sprint(channels)
		}
		m.Tracks = append(m.Tracks, row)
		m.InitData = append(m.InitData, msfInit{ID: t.Name, Type: "inline", Data: init})
		if *kind == nil {
			*kind = &hangKind{Renditions: map[string]hangTrack{}}
		}
		(*kind).Renditions[t.Name] = hangTrack{Codec: codec, Container: hangContainer{Kind: "cmaf", Init: init},
			Width: width, Height: height, SampleRate: rate, Channels: channels}
	}
	return encoded(map[string]any{CatalogHang: h, CatalogMSF: struct {
		Version string `json:"version"`
		msf
	}{msfVersion, m}})
}

// encoded is each value as JSON.
func encoded(values map[string]any) (map[string][]byte, error) {
	out := map[string][]byte{}
	for name, v := range values {
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		out[name] = b
	}
	return out, nil
}

// ParseCatalog reads a catalog of somebody else, of either form, and returns
// the first video and the first audio track that can be taken. It fails with
// ErrMedia when there is none.
func ParseCatalog(b []byte) ([]Track, error) {
	if len(b) > MaxCatalog {
		return nil, fmt.Errorf("%w: a catalog of %d bytes", ErrMedia, len(b))
	}
	var c struct {
		msf
		hang
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, fmt.Errorf("%w: the catalog: %w", ErrMedia, err)
	}
	if len(c.Tracks) > maxTracks || len(c.InitData) > maxTracks {
		return nil, fmt.Errorf("%w: %d tracks", ErrMedia, len(c.Tracks))
	}
	rows := c.Tracks
	for i := range rows {
		for _, init := range c.InitData {
			if init.ID == rows[i].InitRef && rows[i].InitData == "" {
				rows[i].InitData = init.Data
			}
		}
	}
	for _, kind := range []*hangKind{c.Video, c.Audio} {
		if kind == nil {
			continue
		}
		for name, t := range kind.Renditions {
			rows = append(rows, msfTrack{Name: name, Packaging: t.Container.Kind, InitData: t.Container.Init})
		}
	}
	if len(rows) > maxTracks {
		return nil, fmt.Errorf("%w: %d tracks", ErrMedia, len(rows))
	}
	return chosen(rows)
}

// chosen are the first video and the first audio track.
func chosen(rows []msfTrack) (tracks []Track, err error) {
	var have [2]bool
	err = ErrMedia
	for _, row := range rows {
		init, bad := base64.StdEncoding.DecodeString(row.InitData)
		if row.Packaging != "cmaf" || bad != nil {
			continue
		}
		t, bad := ParseTrack(row.Name, init)
		if bad != nil {
			err = bad
			continue
		}
		kind := 0
		if t.Codec.IsVideo() {
			kind = 1
		}
		if !have[kind] {
			have[kind] = true
			tracks = append(tracks, t)
		}
	}
	if len(tracks) == 0 {
		return nil, err
	}
	return tracks, nil
}
