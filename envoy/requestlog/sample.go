package requestlog

import "sluice.dev/sluice/filters/edgeapi"

// Sample is of how many requests Envoy writes a line for the recorder, out of
// edgeapi.WholeSample each.
type Sample struct{ Success, Failure int }

// whole is the sample of an edge with little traffic, and of an Envoy that has just
// been started.
var whole = Sample{edgeapi.WholeSample, edgeapi.WholeSample}

// adjusted is the sample after a second in which seen lines came of sample now, when
// about want of them are to come: fewer at once where there were too many, more
// by and by where there were too few. A sample that is about right stays as it is,
// so that Envoy is told seldom.
func adjusted(now, seen, want int) int {
	switch {
	case seen > want+want/2:
		return max(1, int(int64(now)*int64(want)/int64(seen)))
	case seen < want/4 && now < edgeapi.WholeSample:
		return min(edgeapi.WholeSample, 4*now)
	}
	return now
}
