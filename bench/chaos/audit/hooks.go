package audit

import (
	"crypto/sha256"
	"time"
)

// Hook is one webhook as the receiver got it.
type Hook struct {
	Event  string // its id
	Body   [sha256.Size]byte
	Signed bool // the signature is right
}

// Event is what the platform says has happened.
type Event struct {
	ID, Type, Stream string
	At               time.Time // when it was stored
	Body             [sha256.Size]byte
}

func webhooks(seen Seen, stored Stored) Line {
	l := Line{Promise: "no webhook is lost"}
	got := map[string]bool{}
	for _, h := range seen.Hooks {
		got[h.Event] = true
	}
	gone := map[string]int{}
	for _, e := range stored.Events {
		if e.Type == "stream.deleted" {
			gone[e.Stream]++
		}
		if e.At.After(seen.Since) {
			l.Checked++
			if !got[e.ID] {
				l.breaks("event %s (%s of %s) never reached the receiver", e.ID, e.Type, e.Stream)
			}
		}
	}
	for _, w := range seen.Writes {
		if w.Kind == "stream" && w.Deleted {
			if n := gone[w.ID]; n != 1 {
				l.breaks("the deletion of %s made %d events, want 1", w.ID, n)
			}
		}
	}
	return l
}

func bodies(seen Seen, stored Stored) Line {
	l := Line{Promise: "a webhook is signed, and each copy of it the same", Checked: len(seen.Hooks)}
	events := map[string]Event{}
	for _, e := range stored.Events {
		events[e.ID] = e
	}
	copies := map[string]bool{}
	twice := 0
	for _, h := range seen.Hooks {
		if copies[h.Event] {
			twice++
		}
		copies[h.Event] = true
		switch e, known := events[h.Event]; {
		case !h.Signed:
			l.breaks("event %s came with a wrong signature", h.Event)
		case !known:
			l.breaks("event %s came and is not stored", h.Event)
		case e.Body != h.Body:
			l.breaks("event %s came with another body than is stored", h.Event)
		}
	}
	l.Note = plural(twice, "copy", "copies") + " beyond the first"
	return l
}
