package editor

import "fmt"

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
	fade := func(field string, f number) int {
		n := toFrames(p.rate, c.number(field, f, 0, 0, maxFade))
		if n > p.frames && p.frames > 0 {
			c.fail(field, "is longer than the video", fmt.Sprintf("at most %.3f", p.seconds(p.frames)))
		}
		return n
	}
	p.fadeIn, p.fadeOut = fade("timeline.fade_in", t.FadeIn), fade("timeline.fade_out", t.FadeOut)
}
