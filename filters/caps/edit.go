package caps

import "slices"

// edit replaces body[from:to] by text.
type edit struct {
	from, to int
	text     string
}

// edits collects changes in any order.
type edits []edit

func (e *edits) add(from, to int, text string) { *e = append(*e, edit{from, to, text}) }

// apply appends body with the changes made. Of edits that overlap, the one that
// begins first wins: it removes what the others would have changed.
func (e edits) apply(dst, body []byte) []byte {
	slices.SortStableFunc(e, func(a, b edit) int { return a.from - b.from })
	if need := len(dst) + len(body) + 64; cap(dst) < need {
		dst = append(make([]byte, 0, need), dst...)
	}
	at := 0
	for _, x := range e {
		if x.from < at {
			continue
		}
		dst = append(dst, body[at:x.from]...)
		dst = append(dst, x.text...)
		at = x.to
	}
	return append(dst, body[at:]...)
}
