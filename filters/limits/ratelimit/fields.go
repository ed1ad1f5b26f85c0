package ratelimit

import "strconv"

// WindowHeader is the rate-limit header that is the same on every response:
// Envoy's routes add it for less than a filter could. They do not add it to all
// answers of filters.
const (
	WindowHeader = "x-ratelimit-window"
	WindowValue  = "60" // Seconds
)

// The rate headers (contract 4.4), and the fields of the coming standard.
const (
	LimitHeader     = "x-ratelimit-limit"
	RemainingHeader = "x-ratelimit-remaining"
	ResetHeader     = "x-ratelimit-reset"
	PolicyHeader    = "ratelimit-policy"
	StateHeader     = "ratelimit"
)

// Headers returns the rate headers of an answer at now, in unix seconds, but for
// WindowHeader.
func (r Result) Headers(now int64) [][2]string {
	return [][2]string{
		{LimitHeader, strconv.FormatUint(uint64(r.Limit), 10)},
		{RemainingHeader, strconv.FormatUint(uint64(r.Remaining), 10)},
		{ResetHeader, strconv.FormatInt(r.Reset, 10)},
		{PolicyHeader, string(r.AppendPolicy(nil))},
		{StateHeader, string(r.AppendState(nil, now))},
	}
}

// The fields RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers-10):
// lists of structured fields with one item each, the limit that binds. A policy's
// name must need no escape in a string.

// AppendPolicy appends the value of RateLimit-Policy, such as "events";q=5000;w=60.
func (r Result) AppendPolicy(dst []byte) []byte {
	dst = r.appendName(dst)
	dst = append(dst, ";q="...)
	dst = strconv.AppendUint(dst, uint64(r.Limit), 10)
	return append(dst, ";w="+WindowValue...)
}

// AppendState appends the value of RateLimit at now, in unix seconds, such as
// "events";r=4999;t=60: how many requests are left, and in how many seconds the
// oldest counted one leaves.
func (r Result) AppendState(dst []byte, now int64) []byte {
	dst = r.appendName(dst)
	dst = append(dst, ";r="...)
	dst = strconv.AppendUint(dst, uint64(r.Remaining), 10)
	dst = append(dst, ";t="...)
	return strconv.AppendInt(dst, max(0, r.Reset-now), 10)
}

func (r Result) appendName(dst []byte) []byte {
	dst = append(dst, '"')
	dst = append(dst, r.Policy...)
	return append(dst, '"')
}
