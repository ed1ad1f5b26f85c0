package listener

import (
	"math"
	"time"

	"sluice.dev/sluice/media/live/sound"
	"sluice.dev/sluice/media/transcribe/transcript"
)

// The sound is cut in frames of 20 ms.
const (
	frame    = transcript.Rate / 50
	perFrame = 20 * time.Millisecond
	before   = 15  // frames that are kept before speech begins
	breath   = 25  // frames of silence that end an utterance
	longest  = 300 // frames of an utterance: six seconds
	tail     = 75  // frames at the end of a long one, in which it is cut where it is quiet
	around   = transcript.Rate * 3 / 10
	fewest   = 10 // frames of speech, below which a noise is no utterance
	ratio    = sound.Rate / transcript.Rate
)

// Levels, in decibels below the loudest that there can be.
const (
	quietest = -50.0 // and what is below is silence in any case
	above    = 8.0   // decibels above the noise are speech
	rising   = 0.02  // decibels a frame by which noise may become louder
)

// cutter cuts sound into utterances: where there is a pause, and after six seconds where
// it is quietest. It holds six seconds of sound, and takes time linear in it.
type cutter struct {
	say func(utterance)

	part   []float32 // samples of a frame that is not whole yet, at sound.Rate
	frames int64     // since the start
	noise  float64
	now    []int16   // the utterance, or what came just before it
	levels []float64 // of its frames
	spoken int       // frames of speech in it
	silent int       // frames since then
}

// utterance is a piece of sound in which somebody may speak.
type utterance struct {
	at      time.Duration // from the start of the sound; a little before it at first
	samples []int16
}

func newCutter(say func(utterance)) *cutter { return &cutter{say: say, noise: quietest} }

// write adds sound: samples at sound.Rate, of one channel.
func (c *cutter) write(samples []float32) {
	c.part = append(c.part, samples...)
	rest := c.part
	for ; len(rest) >= frame*ratio; rest = rest[frame*ratio:] {
		c.frame(rest[:frame*ratio])
	}
	c.part = append(c.part[:0], rest...)
}

// frame adds one frame.
func (c *cutter) frame(samples []float32) {
	sum := 0.0
	for i := 0; i < len(samples); i += ratio {
		mean := 0.0
		for _, s := range samples[i : i+ratio] {
			mean += float64(s) / ratio
		}
		if !(mean >= -1) { // not a number is neither
			mean = -1
		}
		mean = min(mean, 1)
		sum += mean * mean
		c.now = append(c.now, int16(mean*math.MaxInt16))
	}
	c.frames++
	level := 10 * math.Log10(sum/frame+1e-12)
	c.levels = append(c.levels, level)
	c.noise = max(quietest-above, min(level, c.noise+rising))
	c.silent++
	if level > max(quietest, c.noise+above) {
		c.spoken++
		c.silent = 0
	}
	switch {
	case c.spoken == 0:
		c.drop(len(c.levels) - before)
	case c.silent >= breath:
		c.end(len(c.levels))
	case len(c.levels) >= longest:
		c.end(c.quiet())
	}
}

// quiet is the frame behind which a long utterance is cut.
func (c *cutter) quiet() int {
	best := len(c.levels) - tail
	for i := best; i < len(c.levels); i++ {
		if c.levels[i] <= c.levels[best] {
			best = i
		}
	}
	return best + 1
}

// end hands on the first n frames; the next utterance begins with the others.
func (c *cutter) end(n int) {
	if c.spoken >= fewest {
		at := time.Duration(c.frames-int64(len(c.levels))) * perFrame
		samples := make([]int16, n*frame+2*around) // with silence at both ends, by which engines know them
		copy(samples[around:], c.now[:n*frame])
		c.say(utterance{at - around*time.Second/transcript.Rate, samples})
	}
	if c.silent >= breath {
		c.drop(n - before) // what comes next may have begun softly
		c.spoken, c.silent = 0, 0
		return
	}
	c.drop(n)
	c.spoken = len(c.levels)
}

// flush hands on what there is at the end of the sound.
func (c *cutter) flush() { c.end(len(c.levels)) }

// drop forgets the first n frames.
func (c *cutter) drop(n int) {
	if n <= 0 {
		return
	}
	c.now = append(c.now[:0], c.now[n*frame:]...)
	c.levels = append(c.levels[:0], c.levels[n:]...)
}
