package editor

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/files/ffmpeg"
)

// found is what is known of an asset that a timeline names.
type found struct {
	Source
	problem string // why it cannot be used; empty: it can
}

// checker turns a timeline into a plan and gathers every fault with its place.
type checker struct {
	form.Form
	plan  plan
	find  func(id string) found
	known map[string]int // numbers of sources
	bad   int            // faults
}

// fail records a fault.
func (c *checker) fail(field, issue, expected string) {
	c.bad++
	c.Fail(field, issue, expected)
}

// check reads in, whose assets find knows, and returns its plan. It fails with every
// fault of the timeline by its place, such as timeline.clips[2].out. It takes time and
// memory linear in the body, which httpapi.DefaultBodyLimit bounds, and that of the pixels
// of one text at a time, 64 MiB at most; find is called once for each clip and sound.
func check(in Input, find func(id string) found) (plan, error) {
	c := &checker{find: find, known: map[string]int{}}
	if in.Title != "" {
		c.Text("title", in.Title, maxTitle)
	}
	c.Metadata("metadata", in.Metadata)
	t := in.Timeline
	if c.count("timeline.clips", len(t.Clips), 1, maxClips) && c.output(in.Output, t.Clips) {
		for i, clip := range t.Clips {
			c.clip(fmt.Sprintf("timeline.clips[%d]", i), i, clip)
		}
		c.whole(t)
	}
	if c.count("timeline.audio", len(t.Audio), 0, maxSounds) {
		for i, s := range t.Audio {
			c.sound(fmt.Sprintf("timeline.audio[%d]", i), s)
		}
	}
	if c.count("timeline.overlays", len(t.Overlays), 0, maxOverlays) {
		for i, o := range t.Overlays {
			c.overlay(fmt.Sprintf("timeline.overlays[%d]", i), o)
		}
	}
	c.bytes()
	return c.plan, c.Err()
}

// count checks how many there are of something.
func (c *checker) count(field string, n, least, most int) bool {
	if n < least || n > most {
		c.fail(field, fmt.Sprintf("has %d entries", n), fmt.Sprintf("%d to %d", least, most))
		return false
	}
	return true
}

// number reads a number from lo to hi; absent: def.
func (c *checker) number(field string, f number, def, lo, hi float64) float64 {
	switch {
	case !f.set:
		return def
	case f.bad:
		c.fail(field, "has the wrong type", "number")
	case !(f.v >= lo && f.v <= hi):
		c.fail(field, "is out of range", fmt.Sprintf("%g to %g", lo, hi))
	default:
		return f.v
	}
	return def
}

// choice reads one of allowed; absent: the first of them.
func (c *checker) choice(field string, f text, allowed ...string) string {
	switch {
	case !f.set:
		return allowed[0]
	case f.bad:
		c.fail(field, "has the wrong type", "string")
	case !slices.Contains(allowed, f.v):
		c.fail(field, "is not an accepted value", "one of "+strings.Join(allowed, ", "))
	default:
		return f.v
	}
	return allowed[0]
}

// output reads the form of the video. Without it nothing can be placed.
func (c *checker) output(o Output, clips []Clip) bool {
	first := Source{Width: 1280, Height: 720}
	if f := c.find(clips[0].AssetID.v); f.problem == "" && f.Height > 0 {
		first = f.Source
	}
	size := func(field string, f number, def, most int) int {
		n := c.number(field, f, float64(min(max(def&^1, 16), most)), 16, float64(most))
		if n != math.Trunc(n) || int(n)%2 != 0 {
			c.fail(field, "is no even number of pixels", "even integer")
		}
		return int(n)
	}
	c.plan.width, c.plan.height = size("output.width", o.Width, first.Width, 3840), size("output.height", o.Height, first.Height, 2160)
	rate, ok := rates[cmp.Or(o.FrameRate.v, 30)]
	if !ok || o.FrameRate.bad || o.FrameRate.set && o.FrameRate.v == 0 {
		c.fail("output.frame_rate", "is not an accepted value", rateList)
		rate, ok = ffmpeg.Rate{Num: 30, Den: 1}, true
	}
	c.plan.rate = rate
	return true
}

// source finds the asset of a field; false: it cannot be used.
func (c *checker) source(field string, id text, want func(Source) string) (n int, s Source, ok bool) {
	const wanted = "id of a video, a recording or a clip of yours that is ready"
	if id.bad {
		c.fail(field, "has the wrong type", "string")
		return 0, s, false
	}
	if id.v == "" {
		c.fail(field, "is missing", wanted)
		return 0, s, false
	}
	f := c.find(id.v)
	if f.problem == "" {
		f.problem = want(f.Source)
	}
	if f.problem != "" {
		c.fail(field, f.problem, wanted)
		return 0, s, false
	}
	n, there := c.known[f.FileID]
	if !there {
		n = len(c.plan.sources)
		c.known[f.FileID] = n
		c.plan.sources = append(c.plan.sources, f.Source)
	}
	return n, f.Source, true
}

// span reads in and out of a part of a film, in seconds.
func (c *checker) span(place string, in, out number, s Source) (from, to float64, ok bool) {
	end := s.Length
	if end == 0 {
		end = maxPosition
	}
	before := c.bad
	from = c.number(place+".in", in, 0, 0, end)
	to = c.number(place+".out", out, s.Length, 0, end)
	if c.bad > before {
		return from, to, false
	}
	switch {
	case to == 0 && !out.set:
		c.fail(place+".out", "is missing", "seconds; the length of the film is not known")
	case to <= from:
		c.fail(place+".out", "is not after in", fmt.Sprintf("more than %g", from))
	default:
		return from, to, true
	}
	return from, to, false
}

// clip places a clip after those before it.
func (c *checker) clip(place string, i int, in Clip) {
	p := &c.plan
	n, s, ok := c.source(place+".asset_id", in.AssetID, func(s Source) string {
		if s.Height == 0 {
			return "has no picture"
		}
		return ""
	})
	out := shot{source: n, speed: c.number(place+".speed", in.Speed, 1, 0.25, 4), gain: c.number(place+".gain", in.Gain, 0, -60, 20),
		silent: in.Mute.v, cover: c.choice(place+".fit", in.Fit, "contain", "cover") == "cover"}
	if in.Mute.bad {
		c.fail(place+".mute", "has the wrong type", "boolean")
	}
	if ok {
		from, to, good := c.span(place, in.In, in.Out, s)
		if out.in = s.From + from; good {
			if out.length = toFrames(p.rate, (to-from)/out.speed); out.length == 0 {
				c.fail(place+".out", "leaves less than one picture", fmt.Sprintf("%.3f or more", from+out.speed*p.seconds(1)))
			}
		}
	}
	out.frames = out.length
	kind, frames := c.transition(place+".transition", i, in.Transition)
	if i > 0 && frames > 0 {
		c.join(place+".transition.duration", kind, frames, &p.shots[i-1], &out)
	}
	if i > 0 {
		before := p.shots[i-1]
		out.start = before.start + before.length - out.overlap
	}
	p.shots = append(p.shots, out)
	p.frames = out.start + out.length
}

// transition reads how a clip follows the one before, and for how many frames.
func (c *checker) transition(place string, i int, t *Transition) (kind string, frames int) {
	if t == nil {
		return "cut", 0
	}
	if i == 0 {
		c.fail(place, "has no clip before it", "timeline.fade_in")
		return "cut", 0
	}
	before := c.bad
	kind = c.choice(place+".type", t.Type, "cut", "crossfade", "fade")
	length := c.number(place+".duration", t.Duration, 1, 0.04, maxFade)
	if kind == "cut" || c.bad > before {
		return kind, 0
	}
	return kind, max(toFrames(c.plan.rate, length), 1)
}

// join gives the two clips of a transition their frames of it. What two transitions take
// of a clip must not meet.
func (c *checker) join(field, kind string, frames int, before, after *shot) {
	if before.length == 0 || after.length == 0 { // which are wrong already
		return
	}
	taken, half := frames, frames
	if kind == "fade" {
		half = (frames + 1) / 2
		taken = half
	}
	room := min(before.length-max(before.overlap, before.fadeIn), after.length)
	if taken > room {
		most := c.plan.seconds(max(room, 0))
		if kind == "fade" {
			most *= 2
		}
		c.fail(field, "is longer than the clips have room for", fmt.Sprintf("at most %.3f", most))
		return
	}
	if kind == "fade" {
		before.fadeOut, after.fadeIn = half, half
	} else {
		after.overlap = frames
	}
}

// whole checks what holds for all clips together.
func (c *checker) whole(t Timeline) {
	p := &c.plan
	if length := p.seconds(p.frames); length > maxLength {
		c.fail("timeline.clips", fmt.Sprintf("last for %.3f s together", length), fmt.Sprintf("%g s at most", maxLength))
	}
	pixels := 0
	for _, s := range p.shots {
		if s.source < len(p.sources) {
			pixels += p.sources[s.source].Width * p.sources[s.source].Height
		}
	}
	if pixels > maxPixels {
		c.fail("timeline.clips", "have too large pictures together", fmt.Sprintf("%d of 1920 by 1080 pixels, or fewer and larger ones", maxClips))
	}
	fade := func(field string, f number) int {
		n := toFrames(p.rate, c.number(field, f, 0, 0, maxFade))
		if n > p.frames && p.frames > 0 {
			c.fail(field, "is longer than the video", fmt.Sprintf("at most %.3f", p.seconds(p.frames)))
		}
		return n
	}
	p.fadeIn, p.fadeOut = fade("timeline.fade_in", t.FadeIn), fade("timeline.fade_out", t.FadeOut)
}

// sound places a sound.
func (c *checker) sound(place string, in Sound) {
	n, s, ok := c.source(place+".asset_id", in.AssetID, func(s Source) string {
		if !s.Sound {
			return "has no sound"
		}
		return ""
	})
	out := sound{source: n, gain: c.number(place+".gain", in.Gain, 0, -60, 20), start: c.number(place+".start", in.Start, 0, 0, maxLength)}
	whole := c.plan.seconds(c.plan.frames)
	if c.plan.frames > 0 && out.start >= whole {
		c.fail(place+".start", "lies beyond the end", fmt.Sprintf("less than %.3f", whole))
	}
	if !ok {
		return
	}
	if s.Length == 0 && !in.Out.set {
		in.Out = number{set: true, v: min(maxPosition, in.In.v+maxLength)}
	}
	if from, to, good := c.span(place, in.In, in.Out, s); good {
		out.in, out.length = s.From+from, min(to-from, max(whole-out.start, 0.001))
		c.plan.sounds = append(c.plan.sounds, out)
	}
}

// bytes checks how much must be read.
func (c *checker) bytes() {
	var all int64
	for _, s := range c.plan.sources {
		all += s.Size
	}
	if all > maxSources {
		c.fail("timeline", fmt.Sprintf("names films of %d bytes together", all), fmt.Sprintf("%d at most", int64(maxSources)))
	}
}
