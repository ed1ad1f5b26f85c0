package editor

import (
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/media/files/ffmpeg"
)

// Source is a film that a timeline names.
type Source struct {
	AssetID       string
	Owner         string
	FileID        string
	Size          int64   // bytes
	From, Length  float64 // seconds: the asset's place in its file, and how long it is; no length: not known
	Width, Height int     // no height: it has no picture
	Sound         bool
}

// plan is a timeline in frames, whose numbers are in bounds.
type plan struct {
	sources       []Source
	shots         []shot
	sounds        []sound
	layers        []layer
	width, height int
	rate          ffmpeg.Rate
	fadeIn        int // frames
	fadeOut       int
	frames        int   // of the whole
	images        int64 // bytes of the pictures of overlays
	shown         int   // of a part of it
}

// shot is a clip as it is shown. Of its frames a preview shows some: those from skip on.
type shot struct {
	source  int
	in      float64 // seconds in the file
	speed   float64
	length  int // frames of all of it
	skip    int
	frames  int // that are shown
	overlap int // of them, how many are shown with the shot before
	fadeIn  int // frames from black, and
	fadeOut int // to black
	gain    float64
	silent  bool
	cover   bool
	start   int // frame of the timeline at which it begins
}

// sound is a part of a film's sound.
type sound struct {
	source     int
	in, length float64 // seconds in the file
	start      float64 // seconds on the timeline
	gain       float64
}

// layer is a picture above the clips, in frames from up to but not including to.
type layer struct {
	made    func() ([]byte, error)
	kind    string // png or jpeg
	w, h    int
	x, y    int
	opacity float64
	from    int
	to      int
}

// seconds is the length of some frames.
func (p plan) seconds(frames int) float64 {
	return float64(frames) * float64(p.rate.Den) / float64(p.rate.Num)
}

// toFrames is the number of frames in some seconds.
func toFrames(r ffmpeg.Rate, seconds float64) int {
	return int(math.Round(seconds * float64(r.Num) / float64(r.Den)))
}

// length is how long the video will be.
func (p plan) length() time.Duration {
	return time.Duration(p.seconds(p.frames) * float64(time.Second))
}

// kbps bounds the bitrate of the pictures: 0.12 bits for each pixel, which veryfast at
// crf 20 rarely asks for, at least 500 and at most 20,000.
func (p plan) kbps() int {
	bits := 0.12 * float64(p.width*p.height) * float64(p.rate.Num) / float64(p.rate.Den)
	return min(max(int(bits/1000), 500), 20_000)
}

// largest bounds the bytes of the video.
func (p plan) largest() int64 {
	return ffmpeg.Largest(p.length(), p.kbps(), p.rate, len(p.pieces()))
}

// window is a part of the timeline, in frames from up to but not including to, in which one
// shot is shown or two cross, and nothing begins or ends.
type window struct{ from, to int }

// pieces are the windows of the whole, in order. Each is made by itself, so that no more
// than two films are decoded at once.
func (p plan) pieces() (list []window) {
	cuts := []int{p.frames}
	for _, s := range p.shots {
		cuts = append(cuts, s.start, s.start+s.overlap)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	for i := range cuts[1:] {
		list = append(list, window{cuts[i], cuts[i+1]})
	}
	return list
}

// in is the plan of what is seen in a window.
func (p plan) in(w window) plan {
	small := p
	small.shots, small.sounds, small.layers, small.shown = nil, nil, nil, w.to-w.from
	for _, s := range p.shots {
		if s.start < w.to && s.start+s.length > w.from {
			small.shots = append(small.shots, s.part(w.from-s.start, small.shown))
		}
	}
	if len(small.shots) == 2 {
		small.shots[1].overlap = small.shown
	}
	for _, l := range p.layers {
		if l.from < w.to && l.to > w.from {
			l.from, l.to = max(l.from-w.from, 0), l.to-w.from
			small.layers = append(small.layers, l)
		}
	}
	return small
}

// at is the plan of the picture at a frame: of what crosses there, or of the one frame.
// which is its number among the frames of that plan.
func (p plan) at(frame int) (small plan, which int) {
	for _, w := range p.pieces() {
		if frame >= w.from && frame < w.to {
			if small = p.in(w); len(small.shots) == 2 {
				return small, frame - w.from
			}
		}
	}
	return p.in(window{frame, frame + 1}), 0
}

// part is n frames of s from skip on.
func (s shot) part(skip, n int) shot {
	s.skip, s.frames, s.overlap = skip, n, 0
	return s
}

// used are the sources that p's shots and sounds are of, by their numbers.
func (p plan) used() []int {
	seen := map[int]bool{}
	var list []int
	add := func(n int) {
		if !seen[n] {
			seen[n] = true
			list = append(list, n)
		}
	}
	for _, s := range p.shots {
		add(s.source)
	}
	for _, s := range p.sounds {
		add(s.source)
	}
	return list
}
