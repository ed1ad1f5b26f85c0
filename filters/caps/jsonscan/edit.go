package jsonscan

import "slices"

// Edits are changes to a text, collected in any order.
type Edits []edit

// edit replaces text[from:to].
type edit struct {
	from, to int
	text     string
}

// Add notes that text[from:to] becomes by.
func (e *Edits) Add(from, to int, by string) { *e = append(*e, edit{from, to, by}) }

// Apply appends text to dst with the changes made. Of edits that overlap, the
// one that begins first wins: it removes what the others would have changed.
// Edits at the same place are made in the order in which they were added.
//
// It sorts the edits, and allocates once at most: as much as dst, text and the
// texts of the edits take together.
func (e Edits) Apply(dst, text []byte) []byte {
	slices.SortStableFunc(e, func(a, b edit) int { return a.from - b.from })
	need := len(dst) + len(text)
	for _, x := range e {
		need += len(x.text)
	}
	if cap(dst) < need {
		dst = append(make([]byte, 0, need), dst...)
	}
	at := 0
	for _, x := range e {
		if x.from < at {
			continue
		}
		dst = append(dst, text[at:x.from]...)
		dst = append(dst, x.text...)
		at = x.to
	}
	return append(dst, text[at:]...)
}
