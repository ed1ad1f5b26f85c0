package transcript

import (
	"math"
	"slices"
	"strings"
	"unicode"
)

// Rate is that of the samples that Estimate looks at, in Hz.
const Rate = 16000

// The sound is looked at in frames of 20 ms.
const (
	frame    = Rate / 50
	perFrame = 1 / 50.0
	window   = 75  // frames that a boundary may lie from where letters alone would put it
	longest  = 100 // frames of one word
	fastest  = 5   // frames of a word, where many follow each other
)

// Estimate says when the words of a text were spoken, of which an engine has said only
// that they lie in samples: a boundary is likely where the sound is weak, above all
// behind a comma, and where the words before it have had the time that their letters
// need. offset is the time of the first sample. It takes time and memory linear in
// samples and text.
func Estimate(text string, samples []int16, offset float64) []Word {
	words := strings.Fields(text)
	e := listen(samples)
	if len(words) == 0 || len(e.weak) == 0 {
		return nil
	}
	out := make([]Word, 0, len(words))
	from := 0
	for i, to := range e.boundaries(words) {
		start, end := e.trim(from, to)
		out = append(out, Word{words[i], round(offset + float64(start)*perFrame), round(offset + float64(end)*perFrame)})
		from = to
	}
	return out
}

// EstimateWords says when the words of t's segments were spoken, where an engine has said
// only when the segments were. It passes over segments whose times make no sense, and
// listens to twice the sound at most however many overlap: it takes time and memory linear
// in samples and text.
func (t *Transcript) EstimateWords(samples []int16) {
	t.WordTimes = Estimated
	left := 2 * len(samples)
	for _, s := range t.Segments {
		if !(s.Start >= 0 && s.Start < s.End && s.End <= t.Duration+1) { // not a number is none of these
			continue
		}
		from, to := min(len(samples), int(s.Start*Rate)), min(len(samples), int(s.End*Rate))
		if left -= to - from; left < 0 {
			return
		}
		t.Words = append(t.Words, Estimate(s.Text, samples[from:to], s.Start)...)
	}
}

// ear is what is known of a sound by frame.
type ear struct {
	weak   []float64 // 0: silent, to 1: as loud as it gets
	spoken []float64 // how many frames before this one are speech; one more than frames
}

// silent is how weak a frame is that has no speech in it.
const silent = 0.5

// listen measures the frames of a sound.
func listen(samples []int16) (e ear) {
	n := len(samples) / frame
	e.weak, e.spoken = make([]float64, n), make([]float64, n+1)
	for i := range n {
		sum := 1.0
		for _, s := range samples[i*frame : (i+1)*frame] {
			sum += float64(s) * float64(s)
		}
		e.weak[i] = math.Log10(sum)
	}
	sorted := slices.Sorted(slices.Values(e.weak))
	if n == 0 {
		return e
	}
	low, high := sorted[n/20], sorted[n-1-n/20]
	for i, w := range e.weak {
		e.weak[i] = min(1, max(0, (w-low)/max(0.5, high-low)))
		e.spoken[i+1] = e.spoken[i]
		if e.weak[i] >= silent {
			e.spoken[i+1]++
		}
	}
	return e
}

// step is the cheapest way to a boundary: what it costs, and where the one before lies.
type step struct {
	cost float64
	from int
}

// row are the steps to the frames from lo on.
type row struct {
	lo    int
	steps []step
}

// at is the step to a frame; ok is false where no way leads.
func (r row) at(frame int) (s step, ok bool) {
	if frame < r.lo || frame >= r.lo+len(r.steps) {
		return s, false
	}
	s = r.steps[frame-r.lo]
	return s, !math.IsInf(s.cost, 1)
}

// boundaries are the frames at which words end, the last at the end of the sound. It
// finds the cheapest by dynamic programming, of as many words as people can say.
func (e ear) boundaries(words []string) []int {
	n := len(e.weak)
	needs := e.needs(words)
	if len(words) > n/fastest {
		return e.byLetters(needs)
	}
	rows := []row{{0, []step{{}}}}
	want := 0.0 // frames of speech before the boundary
	for i, need := range needs {
		want += need
		around, _ := slices.BinarySearch(e.spoken, want)
		lo, hi := max(1, around-window), min(n, around+window)
		if i == len(words)-1 {
			lo, hi = n, n
		}
		next, any := row{lo: lo}, false
		for at := lo; at <= hi; at++ {
			s := e.cheapest(rows[i], at, need)
			if !math.IsInf(s.cost, 1) {
				s.cost += e.boundary(at, words[i])
				any = true
			}
			next.steps = append(next.steps, s)
		}
		if !any { // a pause that no word reaches over
			return e.byLetters(needs)
		}
		rows = append(rows, next)
	}
	ends, at := make([]int, len(words)), n
	for i := len(words); i > 0; i-- {
		ends[i-1] = at
		s, _ := rows[i].at(at)
		at = s.from
	}
	return ends
}

// cheapest is the best way to a boundary at a frame, behind a word that needs so many
// frames of speech.
func (e ear) cheapest(before row, at int, need float64) step {
	best := step{math.Inf(1), 0}
	for from := max(before.lo, at-longest); from < min(at, before.lo+len(before.steps)); from++ {
		s, ok := before.at(from)
		if !ok {
			continue
		}
		off := (e.spoken[at] - e.spoken[from] - need) / (need + 3)
		if cost := s.cost + 4*off*off; cost < best.cost {
			best = step{cost, from}
		}
	}
	return best
}

// boundary is what it costs that a word ends at a frame.
func (e ear) boundary(at int, word string) float64 {
	if at == len(e.weak) {
		return 0
	}
	cost := e.weak[at]
	if strings.ContainsRune(".,;:?!", rune(word[len(word)-1])) {
		cost *= 10 // people breathe there
	}
	return cost
}

// needs is how many frames of speech each word is likely to have.
func (e ear) needs(words []string) []float64 {
	needs, all := make([]float64, len(words)), 0.0
	for i, w := range words {
		needs[i] = 0.5
		for _, r := range w {
			switch {
			case unicode.IsDigit(r):
				needs[i] += 4
			case unicode.IsLetter(r):
				needs[i]++
			}
		}
		all += needs[i]
	}
	for i := range needs {
		needs[i] *= max(1, e.spoken[len(e.weak)]) / all
	}
	return needs
}

// byLetters divides the speech by what words need, and nothing else.
func (e ear) byLetters(needs []float64) []int {
	ends, want := make([]int, len(needs)), 0.0
	for i, need := range needs {
		want += need
		ends[i], _ = slices.BinarySearch(e.spoken, want)
		ends[i] = min(ends[i], len(e.weak))
	}
	ends[len(ends)-1] = len(e.weak)
	return ends
}

// trim leaves the silence out at both ends of a word.
func (e ear) trim(from, to int) (start, end int) {
	start, end = from, to
	for start < end-1 && e.weak[start] < silent {
		start++
	}
	for end > start+1 && e.weak[end-1] < silent {
		end--
	}
	return start, end
}
