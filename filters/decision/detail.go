package decision

import (
	"strconv"
	"unicode/utf8"
)

// Bounds of what an answer says of a request that is wrong: it must not grow with
// the request.
const (
	// MaxDetails is how many bad fields an answer names.
	MaxDetails = 20
	// MaxName is how many bytes of a name or path it repeats.
	MaxName = 100
	// MaxText is how many bytes an issue, or what was expected, may have.
	MaxText = 500
)

// Detail names one bad field (contract 5.1: details[]).
type Detail struct {
	Field    string `json:"field"`
	Issue    string `json:"issue"`
	Expected string `json:"expected,omitempty"`
}

// LargeBody says of a body that it has more than limit bytes.
func LargeBody(limit uint64) Detail {
	return Detail{Field: "body", Issue: "is too large", Expected: "at most " + strconv.FormatUint(limit, 10) + " bytes"}
}

// EncodedBody says of a body, whose Content-Encoding is given, that none is read.
func EncodedBody(encoding string) Detail {
	return Detail{Field: "Content-Encoding", Issue: "is " + Cut(encoding, MaxName), Expected: "no Content-Encoding, or identity"}
}

// More is the last of MaxDetails details when there would be more of them.
var More = Detail{Field: "details", Issue: "has no room for all that is wrong", Expected: "correct what is listed and send the request again"}

// Bounded returns the first of list, MaxDetails at most and the last of them More
// when some are left out, with names and texts cut. It takes time and memory for
// those that it returns only.
func Bounded(list []Detail) []Detail {
	if len(list) == 0 {
		return nil
	}
	out := make([]Detail, 0, min(len(list), MaxDetails))
	for _, d := range list[:min(len(list), MaxDetails)] {
		out = append(out, Detail{Cut(d.Field, MaxName), Cut(d.Issue, MaxText), Cut(d.Expected, MaxText)})
	}
	if len(list) > MaxDetails {
		out[MaxDetails-1] = More
	}
	return out
}

// Cut returns s when it has at most most bytes; else as many of its characters as
// have room before an ellipsis. It looks at most bytes of s at the most.
func Cut(s string, most int) string {
	const ellipsis = "…"
	if len(s) <= most {
		return s
	}
	end := most - len(ellipsis)
	for least := end - utf8.UTFMax; end > max(0, least) && !utf8.RuneStart(s[end]); {
		end--
	}
	return s[:end] + ellipsis
}
