package retry

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ParseAfter reads a Retry-After header (RFC 9110, 10.2.3): seconds, or a date
// that is compared with now. Anything else, and any time past, is 0. The result
// is at most MaxRetryAfter.
//
// It takes time and memory linear in value.
func ParseAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if isDigits(value) {
		seconds, err := strconv.ParseInt(value, 10, 32)
		if err != nil || seconds > int64(MaxRetryAfter/time.Second) {
			return MaxRetryAfter // digits that do not fit ask for a very long time
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return max(0, min(at.Sub(now), MaxRetryAfter))
}

// isDigits says whether s is a number of seconds: no sign, no fraction.
func isDigits(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}
