package usage

import (
	"cmp"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"

	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/limits/meter"
)

// Grain is the length of time that one row counts.
type Grain int16

// The grains.
const (
	Minute Grain = iota
	Hour
	Day
)

// String is the name of g, as clients and Postgres write it.
func (g Grain) String() string { return [...]string{"minute", "hour", "day"}[g] }

// Start is the beginning of the grain that t lies in, in UTC.
func (g Grain) Start(t time.Time) time.Time {
	t = t.UTC()
	switch g {
	case Minute:
		return t.Truncate(time.Minute)
	case Hour:
		return t.Truncate(time.Hour)
	}
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
}

// next is the beginning of the grain after t's.
func (g Grain) next(t time.Time) time.Time {
	return g.Start(g.Start(t).Add([]time.Duration{time.Minute, time.Hour, 24 * time.Hour}[g]))
}

// monthOf is the first day of t's month.
func monthOf(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// cell says which row a count belongs to; see the table usage_counts.
type cell struct {
	account, key   string
	product, route string
	at             time.Time
	grain          Grain
	class          uint8
}

// in is the cell of grain g that c's counts add to.
func (c cell) in(g Grain) cell {
	c.grain, c.at = g, g.Start(c.at)
	return c
}

// compare orders cells as the table's key does.
func (c cell) compare(o cell) int {
	return cmp.Or(cmp.Compare(c.account, o.account), cmp.Compare(c.grain, o.grain), c.at.Compare(o.at), cmp.Compare(c.key, o.key),
		cmp.Compare(c.product, o.product), cmp.Compare(c.route, o.route), cmp.Compare(c.class, o.class))
}

// total is what a quota counts together.
type total struct {
	account, product string
	month            time.Time
}

// compare orders totals as their table's key does.
func (t total) compare(o total) int {
	return cmp.Or(cmp.Compare(t.account, o.account), t.month.Compare(o.month), cmp.Compare(t.product, o.product))
}

// use is the last use of one key.
type use struct {
	key, address string // address is empty when the edge's is none
	at           time.Time
}

// folded is a parcel in the form of the tables.
type folded struct {
	requests uint64
	counts   map[cell]meter.Counts
	totals   map[total]int64
	uses     []use // one for each key, sorted by it
}

// MaxLate is how old a batch may be: one that is older counts as that old. The
// sums of earlier days are then final.
const MaxLate = 24 * time.Hour

// fold sums batches up by minute. Their times are by the clocks of edges, so one
// in the future counts as now.
func fold(batches []meter.Batch, now time.Time) folded {
	f := folded{counts: map[cell]meter.Counts{}, totals: map[total]int64{}}
	last := map[uint64]meter.Use{}
	for _, b := range batches {
		at := within(b.At, now)
		for _, c := range b.Counts {
			f.count(c, at)
		}
		for _, u := range b.Uses {
			if u.At >= last[u.Key].At {
				last[u.Key] = u
			}
		}
	}
	for n, u := range last {
		f.uses = append(f.uses, use{keytable.FormatID(keytable.KeyPrefix, n), hostOf(u.Address), within(u.At, now)})
	}
	slices.SortFunc(f.uses, func(a, b use) int { return cmp.Compare(a.key, b.key) })
	return f
}

// within is the time of unix seconds, no later than now and not too early.
func within(seconds int64, now time.Time) time.Time {
	t := time.Unix(seconds, 0).UTC()
	if t.After(now) {
		return now
	}
	if oldest := now.Add(-MaxLate); t.Before(oldest) {
		return oldest
	}
	return t
}

// count adds c, closed at at.
func (f *folded) count(c meter.Count, at time.Time) {
	x := cell{product: clean(c.Route.Product), route: clean(c.Route.Name), at: Minute.Start(at), class: c.Class}
	if c.Account != 0 {
		x.account = keytable.FormatID(keytable.AccountPrefix, c.Account)
	}
	if c.Key != 0 {
		x.key = keytable.FormatID(keytable.KeyPrefix, c.Key)
	}
	merge(f.counts, x, c.Counts)
	f.requests += c.Requests
	if passed := c.Requests - c.Refused; passed > 0 && x.account != "" {
		f.totals[total{x.account, x.product, monthOf(at)}] += int64(passed)
	}
}

// accounts are those with totals, sorted.
func (f *folded) accounts() []string {
	seen := map[string]bool{}
	for t := range f.totals {
		seen[t.account] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// merge adds n to the counts of c.
func merge(counts map[cell]meter.Counts, c cell, n meter.Counts) {
	sum := counts[c]
	sum.Add(n)
	counts[c] = sum
}

// clean makes a name one that Postgres stores.
func clean(name string) string {
	b := []byte(name)
	for i, c := range b {
		if c < ' ' || c > '~' {
			b[i] = '?'
		}
	}
	return string(b)
}

// hostOf is the address of host:port; empty when it is none. A mapped IPv4
// address is shown as what it is.
func hostOf(hostPort string) string {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = hostPort
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return ""
	}
	return a.Unmap().WithZone("").String()
}
