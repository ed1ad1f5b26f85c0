package dash

import (
	"fmt"
	"net/url"
	"time"

	"github.com/Eyevinn/dash-mpd/mpd"
	"sluice.dev/sluice/media/files/fragments"
)

// OnDemand writes the manifest of a stored film for a bearer of token. Each of its
// tracks is a file at the address that name gives for its number. It takes time linear
// in the number of tracks.
func OnDemand(f fragments.Film, token string, name func(track int) string) ([]byte, error) {
	m := mpd.NewMPD(mpd.STATIC_TYPE)
	m.Profiles = mpd.ListOfProfilesType(onDemandProfile)
	p := mpd.NewPeriod()
	m.AppendPeriod(p)
	var length, longest time.Duration
	for i, c := range f.Tracks {
		length, longest = max(length, span(c.Duration, c.Timescale)), max(longest, span(c.Longest, c.Timescale))
		set, rep := adaptation(c.Track, i, fmt.Sprintf("%s%d", c.Kind, i+1), c.Peak)
		set.SubsegmentAlignment, set.SubsegmentStartsWithSAP = true, 1
		rep.BaseURLs = []*mpd.BaseURLType{mpd.NewBaseURL(name(i) + "?token=" + url.QueryEscape(token))}
		rep.SetSegmentBase(uint32(c.Init), uint32(c.Index), true)
		rep.SegmentBase.Timescale = &c.Timescale
		if c.Skip > 0 {
			rep.SegmentBase.PresentationTimeOffset = mpd.Ptr(c.Skip)
		}
		p.AppendAdaptationSet(set)
	}
	m.MediaPresentationDuration, m.MinBufferTime, m.MaxSubsegmentDuration = duration(length), duration(longest), duration(longest)
	return write(m)
}
