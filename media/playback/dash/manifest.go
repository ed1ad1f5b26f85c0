// Package dash writes manifests of MPEG-DASH (ISO/IEC 23009-1): of live streams, over
// the very segments that HLS hands out, and of stored files.
package dash

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/Eyevinn/dash-mpd/mpd"
	"sluice.dev/sluice/media/files/fragments"
)

// ContentType is the media type of a manifest.
const ContentType = "application/dash+xml"

// The profiles of ISO/IEC 23009-1, 8.
const (
	liveProfile     = "urn:mpeg:dash:profile:isoff-live:2011"
	onDemandProfile = "urn:mpeg:dash:profile:isoff-on-demand:2011"
)

// channels is the scheme by which a manifest tells the number of channels.
const channels = "urn:mpeg:dash:23003:3:audio_channel_configuration:2011"

// segment is one segment of a track, on the track's clock.
type segment struct {
	number   uint64
	time     uint64
	duration uint64
}

// liveTrack is a track of a stream on air.
type liveTrack struct {
	fragments.Track
	id        string // such as video1
	init      string // name of the initialisation segment
	media     string // name of a segment, with $Number$ where its number stands
	frameRate string
	bandwidth uint32 // bits a second, of the densest segment so far
	segments  []segment
}

// live is a stream on air at one moment.
type live struct {
	session string        // the engine's name for this broadcast
	begun   time.Time     // when the tracks' clocks said 0
	dated   time.Time     // the same, by the dates of later playlists, within steady
	longest time.Duration // of a segment
	part    time.Duration // of a part of one; 0: the engine makes none
	tracks  []liveTrack
}

// startOfAll is the availability start time of every live manifest: a period's start is
// its distance to it, so that a stream that comes back goes on in a further period.
var startOfAll = time.Unix(0, 0)

// mpd is the manifest of l for a bearer of token at now. It takes time linear in the number
// of segments.
func (l live) mpd(token string, now time.Time) *mpd.MPD {
	m := mpd.NewMPD(mpd.DYNAMIC_TYPE)
	m.Profiles = mpd.ListOfProfilesType(liveProfile)
	m.AvailabilityStartTime = mpd.DateTime(startOfAll.UTC().Format(time.RFC3339))
	m.PublishTime = mpd.DateTime(now.UTC().Format(time.RFC3339))
	m.MinimumUpdatePeriod = duration(l.longest)
	m.MinBufferTime = duration(l.longest)
	m.MaxSegmentDuration = duration(l.longest)
	m.SuggestedPresentationDelay = duration(3 * l.longest)
	m.TimeShiftBufferDepth = duration(l.depth())
	m.UTCTimings = []*mpd.DescriptorType{{SchemeIdUri: "urn:mpeg:dash:utc:direct:2014", Value: now.UTC().Format("2006-01-02T15:04:05.000Z")}}
	p := mpd.NewPeriod()
	p.Id, p.Start = l.session, duration(l.begun.Sub(startOfAll))
	m.AppendPeriod(p)
	for i, t := range l.tracks {
		set, rep := adaptation(t.Track, i, t.id, t.bandwidth)
		set.SegmentAlignment, set.StartWithSAP = true, 1
		if t.Kind == fragments.Video {
			rep.FrameRate = mpd.FrameRateType(t.frameRate)
		}
		rep.SegmentTemplate = t.template(token)
		p.AppendAdaptationSet(set)
	}
	return m
}

// depth is how far back the stream can be watched: as far as its shortest track.
func (l live) depth() (least time.Duration) {
	for i, t := range l.tracks {
		var ticks uint64
		for _, s := range t.segments {
			ticks += s.duration
		}
		if d := span(ticks, t.Timescale); i == 0 || d < least {
			least = d
		}
	}
	return least
}

// template is where the track's segments are found, and when each one is.
func (t liveTrack) template(token string) *mpd.SegmentTemplateType {
	out := mpd.NewSegmentTemplate()
	out.Initialization, out.Media = address(t.init, token), address(t.media, token)
	out.Timescale, out.StartNumber = &t.Timescale, mpd.Ptr(uint32(t.segments[0].number))
	out.SegmentTimeline = mpd.NewSegmentTimeline()
	end := uint64(0)
	for i, s := range t.segments {
		runs := out.SegmentTimeline.S
		if i > 0 && s.time == end && runs[len(runs)-1].D == s.duration {
			runs[len(runs)-1].R++
		} else {
			next := &mpd.S{D: s.duration}
			if i == 0 || s.time != end {
				next.T = mpd.Ptr(s.time)
			}
			out.SegmentTimeline.S = append(runs, next)
		}
		end = s.time + s.duration
	}
	return out
}

// address is the name of a segment with the viewer's token, as HLS writes it.
func address(name, token string) string {
	if token == "" {
		return name
	}
	return name + "?token=" + strings.ReplaceAll(url.QueryEscape(token), "$", "$$")
}

// adaptation is the set of a track, whose only representation is named id.
func adaptation(t fragments.Track, i int, id string, bandwidth uint32) (*mpd.AdaptationSetType, *mpd.RepresentationType) {
	set := mpd.NewAdaptationSet()
	set.Id, set.ContentType, set.MimeType, set.Lang = mpd.Ptr(uint32(i+1)), mpd.RFC6838ContentTypeType(t.Kind), t.Mime(), t.Language
	rep := mpd.NewRepresentation()
	rep.Id, rep.Codecs, rep.Bandwidth = id, t.Codecs, bandwidth
	rep.Width, rep.Height = uint32(t.Width), uint32(t.Height)
	if t.SampleRate > 0 {
		rate := mpd.UIntVectorType(strconv.Itoa(t.SampleRate))
		rep.AudioSamplingRate = &rate
	}
	if t.Channels > 0 {
		rep.AudioChannelConfigurations = []*mpd.DescriptorType{mpd.NewDescriptor(channels, strconv.Itoa(t.Channels), "")}
	}
	set.AppendRepresentation(rep)
	return set, rep
}

// write is the text of a manifest.
func write(m *mpd.MPD) ([]byte, error) {
	text, err := m.WriteToString("  ", true)
	if err != nil {
		return nil, fmt.Errorf("write the manifest: %w", err)
	}
	return []byte(text), nil
}

// duration is d as manifests have it, to the millisecond.
func duration(d time.Duration) *mpd.Duration { return mpd.Ptr(mpd.Duration(d.Round(time.Millisecond))) }

// span is a number of ticks as time. Ticks beyond what a stream can last are cut off.
func span(ticks uint64, scale uint32) time.Duration {
	const most = 1 << 30 // seconds
	whole, rest := min(ticks/uint64(scale), most), ticks%uint64(scale)
	return time.Duration(whole)*time.Second + time.Duration(rest)*time.Second/time.Duration(scale)
}
