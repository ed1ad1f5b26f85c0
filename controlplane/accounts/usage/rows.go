package usage

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/filters/limits/meter"
)

// rows are cells with their counts, a column each, as a statement takes them.
type rows struct {
	account, key, product, route, latency []string
	grain, class                          []int16
	at                                    []time.Time
	requests, refused, in, out, open      []int64
}

// add appends one row.
func (r *rows) add(c cell, n meter.Counts) {
	r.account, r.key = append(r.account, c.account), append(r.key, c.key)
	r.product, r.route = append(r.product, c.product), append(r.route, c.route)
	r.grain, r.class, r.at = append(r.grain, int16(c.grain)), append(r.class, int16(c.class)), append(r.at, c.at)
	r.requests, r.refused = append(r.requests, int64(n.Requests)), append(r.refused, int64(n.Refused))
	r.in, r.out = append(r.in, int64(n.In)), append(r.out, int64(n.Out))
	r.latency, r.open = append(r.latency, arrayText(n.Latency)), append(r.open, int64(n.Open))
}

// arrayText writes a histogram as Postgres writes an array.
func arrayText(latency [meter.Buckets]uint32) string {
	parts := make([]string, len(latency))
	for i, n := range latency {
		parts[i] = strconv.FormatUint(uint64(n), 10)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// latencyOf is a SQL array of an expression for each bucket; format takes the
// bucket's number, from 1.
func latencyOf(format string) string {
	parts := make([]string, meter.Buckets)
	for i := range parts {
		parts[i] = fmt.Sprintf(format, i+1)
	}
	return "ARRAY[" + strings.Join(parts, ", ") + "]"
}
