// Package plans says how much of the media product each plan may use.
package plans

// Limits bound one owner. Zero means no bound.
type Limits struct {
	ConcurrentStreams int   // streams live or paused at a time; beyond: STREAM_003
	BitrateKbps       int   // of one stream, kbit/s; beyond: STREAM_002
	FileBytes         int64 // of one uploaded or fetched file; beyond: STORAGE_001
	StorageBytes      int64 // of everything stored; beyond: BILLING_002
}

// Table maps a plan's name to its limits; the row "" holds for every plan that
// has none, and for paying agents, who have no plan.
type Table map[string]Limits

const (
	mib = int64(1) << 20
	gib = mib << 10
)

// Default is the table of a platform that configures none.
var Default = Table{
	"":           {ConcurrentStreams: 1, BitrateKbps: 6_000, FileBytes: 512 * mib, StorageBytes: 5 * gib},
	"free":       {ConcurrentStreams: 1, BitrateKbps: 6_000, FileBytes: 512 * mib, StorageBytes: 5 * gib},
	"pro":        {ConcurrentStreams: 10, BitrateKbps: 20_000, FileBytes: 5 * gib, StorageBytes: 500 * gib},
	"enterprise": {ConcurrentStreams: 200, BitrateKbps: 60_000, FileBytes: 50 * gib},
	"local":      {ConcurrentStreams: 50, BitrateKbps: 60_000, FileBytes: 1 * gib, StorageBytes: 20 * gib},
}

// Of returns the limits of plan.
func (t Table) Of(plan string) Limits {
	if l, ok := t[plan]; ok {
		return l
	}
	return t[""]
}
