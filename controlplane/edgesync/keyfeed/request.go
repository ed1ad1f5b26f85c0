package keyfeed

import (
	"encoding/hex"
	"net/url"
	"strconv"
	"time"

	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// maxWait bounds how long a poll may wait for a change.
const maxWait = 30 * time.Second

// request is what an edge asks for. The zero value asks for the first page of a
// snapshot.
type request struct {
	epoch, position uint64
	cursor          keytable.Tag // zero: not in the middle of a snapshot
	wait            time.Duration
}

// parseRequest reads the query of a poll: epoch, position (decimal), cursor (32
// hexadecimal digits) and wait (seconds, at most 30); each may be absent. It
// fails with invalid_request that names every bad one.
//
// It takes time linear in the values that it reads.
func parseRequest(q url.Values) (request, error) {
	p := parser{q: q}
	r := request{
		epoch:    p.number("epoch", 1<<63-1),
		position: p.number("position", 1<<63-1),
		wait:     time.Duration(p.number("wait", uint64(maxWait/time.Second))) * time.Second,
	}
	if s := q.Get("cursor"); s != "" {
		b, err := hex.DecodeString(s)
		if err != nil || len(b) != len(r.cursor) {
			p.bad("cursor", "32 hexadecimal digits")
		} else {
			copy(r.cursor[:], b)
		}
	}
	return r, apierror.Invalid(p.details)
}

// parser collects the faults of a query.
type parser struct {
	q       url.Values
	details []decision.Detail
}

// number reads a decimal of at most most; 0 when it is absent or bad.
func (p *parser) number(name string, most uint64) uint64 {
	s := p.q.Get(name)
	if s == "" {
		return 0
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n > most {
		p.bad(name, "a whole number up to "+strconv.FormatUint(most, 10))
		return 0
	}
	return n
}

// bad notes a fault.
func (p *parser) bad(name, expected string) {
	p.details = append(p.details, decision.Detail{Field: name, Issue: "is not valid", Expected: expected})
}
