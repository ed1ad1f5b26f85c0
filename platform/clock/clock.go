// Package clock says what time it is by the clock that a Config names.
package clock

import "time"

// Or is the time by now, or by the machine's clock where now is nil.
func Or(now func() time.Time) time.Time {
	if now == nil {
		return time.Now()
	}
	return now()
}
