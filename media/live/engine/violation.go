package engine

import (
	"slices"
	"time"

	"sluice.dev/sluice/filters/decision"
)

// codecs are the tracks that players understand, by MediaMTX's names.
var codecs = []string{"H264", "H265", "AV1", "VP9", "VP8", "MPEG-4 Audio", "Opus", "Generic"}

// measure is the least time over which a bitrate is measured: encoders send the
// start of a stream in a burst.
const measure = 10 * time.Second

// slack is by how much a bitrate may pass its limit, for what the container adds.
const slack = 1.15

// publisher is what is remembered of one connection.
type publisher struct {
	seen  time.Time // when its bytes were counted first
	bytes uint64    // that it had sent by then
	live  bool      // its stream was moved to live
	told  bool      // the account knows why it is closed
}

// violation says which rule a publisher breaks: "" none, STREAM_005 a codec that
// players do not understand, STREAM_002 more bits than the limit, in kbit/s (0: no
// limit), over at least measure.
func violation(p Path, since publisher, limit int, now time.Time) decision.Code {
	for _, t := range p.Tracks {
		if !slices.Contains(codecs, t) {
			return decision.Stream005
		}
	}
	elapsed := now.Sub(since.seen)
	if limit == 0 || elapsed < measure || p.Received < since.bytes {
		return ""
	}
	kbps := float64(p.Received-since.bytes) * 8 / 1000 / elapsed.Seconds()
	if kbps > float64(limit)*slack {
		return decision.Stream002
	}
	return ""
}

// limitOf is the lower of a stream's own bitrate and its plan's; 0: none.
func limitOf(own, plan int) int {
	if own == 0 || plan > 0 && plan < own {
		return plan
	}
	return own
}
