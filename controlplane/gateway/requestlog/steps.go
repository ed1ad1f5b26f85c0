package requestlog

// Step is a part of a request's time.
type Step struct {
	Name string
	Took int64 // microseconds
	// FromPart and ToPart are where it lies in the whole, 0 to 1.
	FromPart, ToPart float64
}

// Steps are what the request's time went to, one after the other, as far as it came.
// A request that was still arriving while it was answered has its first step end
// where the next begins.
func (r Request) Steps() []Step {
	t := r.Timings
	var list []Step
	at := int64(0)
	total := max(t.Total, 1)
	add := func(name string, until *int64) {
		if until == nil {
			return
		}
		end := min(max(*until, at), total)
		list = append(list, Step{name, end - at, float64(at) / float64(total), float64(end) / float64(total)})
		at = end
	}
	if t.Forwarded == nil {
		add("receive the request", t.Received)
		add("answer at the edge", &total)
		return list
	}
	add("check at the edge", t.Forwarded)
	add("wait for the upstream", t.FirstByte)
	if t.FirstByte == nil {
		add("no response from the upstream", &total)
		return list
	}
	add("receive its response", t.Answered)
	add("send it to the client", &total)
	return list
}
