// Package plans says how much of the media product each plan may use. The figures stand in
// the configuration of the platform.
package plans

// Limits bound one owner. Zero means no bound.
type Limits struct {
	ConcurrentStreams int   // streams live or paused at a time; beyond: STREAM_003
	BitrateKbps       int   // of one stream, kbit/s; beyond: STREAM_002
	FileBytes         int64 // of one uploaded or fetched file; beyond: STORAGE_001
	StorageBytes      int64 // of everything stored; beyond: BILLING_002
	CallsPerDay       int   // telephone calls out in a day (UTC); beyond: BILLING_002; negative: none at all
}

// Source says what the limits of a plan are now. Paying agents, who have no plan, are of
// the plan "".
type Source interface {
	Of(plan string) Limits
}

// Table maps a plan's name to its limits; the row "" holds for every plan that
// has none. An empty table bounds nothing.
type Table map[string]Limits

// Of returns the limits of plan.
func (t Table) Of(plan string) Limits {
	if l, ok := t[plan]; ok {
		return l
	}
	return t[""]
}
