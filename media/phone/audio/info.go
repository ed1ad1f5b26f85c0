package audio

import (
	"strconv"
	"strings"
	"time"
)

// maxInfo bounds the body of an INFO request, in bytes.
const maxInfo = 256

// ReadInfo reads a key from the body of a SIP INFO request: application/dtmf-relay, with
// lines Signal= and Duration= (milliseconds), or application/dtmf, the key alone. It
// takes time linear in body, which it refuses beyond 256 bytes.
func ReadInfo(kind string, body []byte) (Key, bool) {
	if len(body) > maxInfo {
		return Key{}, false
	}
	kind, _, _ = strings.Cut(kind, ";")
	signal, lasted := "", 0
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "application/dtmf":
		signal = string(body)
	case "application/dtmf-relay":
		for row := range strings.Lines(string(body)) {
			name, value, _ := strings.Cut(row, "=")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "signal":
				signal = value
			case "duration":
				lasted, _ = strconv.Atoi(strings.TrimSpace(value)) // a length that is none is not told
			}
		}
	}
	signal = strings.ToUpper(strings.TrimSpace(signal))
	switch signal { // some telephones send the numbers of the two
	case "10":
		signal = "*"
	case "11":
		signal = "#"
	}
	if len(signal) != 1 || !strings.Contains(digits, signal) {
		return Key{}, false
	}
	return Key{signal, time.Duration(min(max(lasted, 0), 10_000)) * time.Millisecond}, true
}
