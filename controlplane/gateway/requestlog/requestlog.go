// Package requestlog keeps for a day what happened to requests: all failures up to a
// rate, and a sample of the others. Edges record them (envoy/requestlog); here their
// batches are taken, within bounds of the whole and of each account, and read: by id,
// and newest first by what one looks for.
//
// What a batch brings that does not fit is counted, so that whoever reads knows that
// there was more.
package requestlog

import (
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/platform/clock"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Kept is how long a request can be read.
const Kept = 24 * time.Hour

// The table is divided into slots that go round, so that the oldest is emptied at once.
const (
	slots      = 7
	slotLength = 4 * time.Hour // of what arrived in it; six whole ones are a day
)

// How many rows a slot takes. They are given out evenly over its four hours, with
// slotBurst of them at once: no flood in its first minutes leaves the rest without. An
// account, and all callers together whom nobody knows, have a fifth; requests that
// did not fail have half.
const (
	slotRows   = 300_000 // 2.1 million in all, some 3 GB
	slotBurst  = slotRows / 10
	shareOf    = 5
	successOf  = 2
	maxSkew    = 5 * time.Minute // that an edge's clock may be ahead
	scanAtOnce = 20_000          // rows that one list looks at, at most
)

// Store keeps requests in Postgres.
type Store struct {
	DB postgres.DB
	// DocsBase is the public address of the gateway, for links; empty: relative links.
	DocsBase string
	// PathKey is for records of all requests; empty: there are none.
	PathKey PathKey
	Now     func() time.Time // nil: time.Now
}

// now is the time by the clock of s, in UTC.
func (s Store) now() time.Time { return clock.Or(s.Now).UTC() }

// Request is what is known of one request.
type Request struct {
	edgeapi.Request
	Edge    string    `json:"edge"`
	EndedAt time.Time `json:"ended_at"`
	// PathTemplate and Class are those that the route had when the request arrived.
	PathTemplate string `json:"path_template,omitempty"`
	Class        string `json:"class,omitempty"`
	// Explanation says in a sentence what became of it.
	Explanation string `json:"explanation"`
	// DocumentationURL leads to the page of Code.
	DocumentationURL string `json:"documentation_url,omitempty"`
}

// explained completes a request by what follows from the rest.
func (s Store) explained(r Request) Request {
	r.Explanation = explain(r.Request)
	if r.Code != "" {
		r.DocumentationURL = decision.DocsURL(s.DocsBase, decision.Code(r.Code))
	}
	return r
}
