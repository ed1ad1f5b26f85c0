package broadcast

// Broadcast is what is live of one stream: its tracks by name, those of its catalogs
// among them.
type Broadcast struct{ tracks map[string]*Track }

// catalogPriority is before that of sound and pictures.
const catalogPriority = 0

// New is a broadcast of tracks that are described by catalogs.
func New(tracks map[string]*Track, catalogs map[string][]byte) *Broadcast {
	b := &Broadcast{tracks: map[string]*Track{}}
	for name, t := range tracks {
		b.tracks[name] = t
	}
	for name, text := range catalogs {
		t := NewTrack(catalogPriority)
		t.Append(text, true)
		t.EndGroup()
		b.tracks[name] = t
	}
	return b
}

// Track is the track of that name; nil: there is none.
func (b *Broadcast) Track(name string) *Track { return b.tracks[name] }

// Close ends all tracks.
func (b *Broadcast) Close() {
	for _, t := range b.tracks {
		t.Close()
	}
}
