package editor

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"sluice.dev/sluice/filters/decision"
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

	formless []decision.Detail // those of the body's form
}

// fail records a fault, but for one of what could not be read.
func (c *checker) fail(field, issue, expected string) {
	c.bad++
	for _, d := range c.formless {
		if rest, within := strings.CutPrefix(field, d.Field); within && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return
		}
	}
	c.Fail(field, issue, expected)
}

// check reads in, whose assets find knows, and returns its plan. It fails with every
// fault of the timeline by its place, such as timeline.clips[2].out. It takes time and
// memory linear in the body, which httpapi.DefaultBodyLimit bounds; find is called once
// for each clip and sound.
func check(in Input, find func(id string) found) (plan, error) {
	c := &checker{find: find, known: map[string]int{}}
	for _, d := range in.faults {
		c.fail(d.Field, d.Issue, d.Expected)
	}
	c.formless = in.faults
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
		rate = ffmpeg.Rate{Num: 30, Den: 1}
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

// Check reports every fault of in, whose assets find knows: it returns one, or why it
// cannot be used.
func (in Input) Check(find func(id string) (s Source, problem string)) error {
	_, err := check(in, func(id string) found {
		s, problem := find(id)
		return found{s, problem}
	})
	return err
}
