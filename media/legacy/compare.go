package legacy

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"sluice.dev/sluice/media/assets"
)

// tolerance is by how many seconds a duration may differ: providers round.
const tolerance = 1.0

// maxListed bounds the lists in answers.
const maxListed = 100

// Imported is a video that was imported, and what became of it.
type Imported struct {
	LegacyID   string `db:"legacy_id"`
	VODID      string `db:"vod_id"` // empty: refused
	DurationMS int64  `db:"duration_ms"`
	FileSize   int64  `db:"file_size"`
	Error      string `db:"error"`

	Status         assets.Status `db:"status"` // of the video; empty: it is gone
	HereDurationMS int64         `db:"here_duration_ms"`
	HereFileSize   int64         `db:"here_file_size"`
	HereError      string        `db:"here_error"`
}

// Side is one side of a comparison.
type Side struct {
	Videos   int     `json:"videos"`
	Duration float64 `json:"duration"` // seconds
	Bytes    int64   `json:"bytes"`
}

// add counts one more video. Seconds are kept to the millisecond: sums of many
// halves of nothing are nobody's length.
func (s *Side) add(durationMS, bytes int64) {
	s.Videos++
	s.Duration = math.Round(s.Duration*1000+float64(durationMS)) / 1000
	s.Bytes += bytes
}

// Comparison is the answer of GET …/comparison.
type Comparison struct {
	Legacy   Side     `json:"legacy"`
	Imported Side     `json:"imported"` // those that are ready
	Missing  []string `json:"missing"`  // legacy ids that are not ready here, at most 100
	Complete bool     `json:"complete"`
	Partial  bool     `json:"partial"` // the provider has more videos than were looked at
}

// Comparing makes a Comparison of a provider's pages as they come. It keeps sums,
// the ids that are ready here and at most 100 that are missing, and nothing else of
// what the provider says.
type Comparing struct {
	out     Comparison
	ready   map[string]bool
	missing int
}

// NewComparing returns a Comparing that has seen no page.
func NewComparing() *Comparing {
	return &Comparing{out: Comparison{Missing: []string{}}, ready: map[string]bool{}}
}

// Here counts a video that was imported.
func (c *Comparing) Here(t Imported) {
	if t.Status == assets.Ready {
		c.ready[t.LegacyID] = true
		c.out.Imported.add(t.HereDurationMS, t.HereFileSize)
	}
}

// There counts a page of the provider, after all of Here.
func (c *Comparing) There(page []Video) {
	for _, v := range page {
		c.out.Legacy.add(int64(v.Duration*1000), v.Size)
		if c.ready[v.ID] {
			continue
		}
		if c.missing++; len(c.out.Missing) < maxListed {
			c.out.Missing = append(c.out.Missing, strings.Clone(v.ID)) // and not the page around it
		}
	}
}

// Done returns the comparison. partial: the provider has more pages.
func (c *Comparing) Done(partial bool) Comparison {
	c.out.Partial, c.out.Complete = partial, c.missing == 0 && !partial
	return c.out
}

// Problem is a video that did not arrive as it was.
type Problem struct {
	LegacyID string `json:"legacy_id"`
	VODID    string `json:"vod_id"`
	Issue    string `json:"issue"`
}

// Validation is the answer of POST …/validate.
type Validation struct {
	Valid    bool      `json:"valid"`
	Checked  int       `json:"checked"`
	Problems []Problem `json:"problems"` // at most 100
}

// add checks a video that was imported against what the provider said of it.
func (v *Validation) add(t Imported) {
	v.Checked++
	issue := t.issue()
	if issue == "" {
		return
	}
	v.Valid = false
	if len(v.Problems) < maxListed {
		v.Problems = append(v.Problems, Problem{t.LegacyID, t.VODID, issue})
	}
}

// issue is what is wrong with a video that was imported, or "". What the
// provider did not tell is not held against it.
func (t Imported) issue() string {
	off := math.Abs(float64(t.HereDurationMS-t.DurationMS)) / 1000
	switch {
	case t.VODID == "":
		return "was refused: " + t.Error
	case t.Status == "":
		return "was deleted here"
	case t.Status == assets.Failed:
		return "failed: " + t.HereError
	case t.Status != assets.Ready:
		return "is " + string(t.Status)
	case t.FileSize > 0 && t.FileSize != t.HereFileSize:
		return fmt.Sprintf("has %d bytes, not %d", t.HereFileSize, t.FileSize)
	case t.DurationMS > 0 && t.HereDurationMS > 0 && off > tolerance:
		return fmt.Sprintf("lasts %.3f s, not %.3f s", float64(t.HereDurationMS)/1000, float64(t.DurationMS)/1000)
	}
	return ""
}

// Progress is how far an import is.
type Progress struct {
	Total      int     `json:"total"` // imported so far
	Processing int     `json:"processing"`
	Ready      int     `json:"ready"`
	Failed     int     `json:"failed"`
	Percentage float64 `json:"percentage"` // of total, ready or failed
}

// progress is how far an import of total videos is.
func progress(total, processing, ready int) Progress {
	p := Progress{Total: total, Processing: processing, Ready: ready, Failed: total - processing - ready} // failed, refused or gone
	if total > 0 {
		p.Percentage = math.Round(1000*float64(total-processing)/float64(total)) / 10
	}
	return p
}

// eventNames maps the names that other providers give their events to ours.
var eventNames = map[string]string{
	"live_stream.active": "stream.started", "live_stream.idle": "stream.ended", "live_stream.deleted": "stream.deleted",
	"live_input.connected": "stream.started", "live_input.disconnected": "stream.ended", "live_input.errored": "stream.error",
	"video.asset.ready": "vod.ready", "video.asset.errored": "recording.failed", "video.encoding.quality.completed": "vod.ready",
	"video.live_stream.active": "stream.started", "video.live_stream.idle": "stream.ended", "video.asset.track.ready": "captions.generated",
	"video.ready": "vod.ready", "ready": "vod.ready", "stream.ready": "recording.ready",
}

// known are the names that need no mapping.
var known = []string{"stream.started", "stream.ended", "stream.error", "stream.deleted", "recording.completed", "recording.failed",
	"recording.ready", "viewer.threshold_reached", "billing.usage_warning", "vod.ready", "captions.generated", "clip.created"}

// Translate gives our names of a provider's events, sorted and without doubles,
// and those that have none.
func Translate(events []string) (ours, unknown []string) {
	ours, unknown = []string{}, []string{}
	for _, e := range events {
		if name, ok := eventNames[e]; ok {
			ours = append(ours, name)
		} else if slices.Contains(known, e) {
			ours = append(ours, e)
		} else {
			unknown = append(unknown, e)
		}
	}
	slices.Sort(ours)
	return slices.Compact(ours), unknown
}
