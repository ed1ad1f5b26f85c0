package routehint

import (
	"strings"

	"sluice.dev/sluice/filters/decision"
)

// whys say of a path how it differs from the nearest route's.
var whys = [...]string{
	Elsewhere:    "is mapped at the listener ",
	SlashTooMany: "has a slash at its end that the nearest route has not",
	SlashMissing: "lacks the slash at its end that the nearest route has",
	Case:         "differs from the nearest route in capital letters",
	Prefix:       "begins otherwise than the nearest route",
	Spelling:     "is spelled otherwise than the nearest route",
}

const maxMethod = 20 // bytes of a method that an answer repeats

// Detail says of a request that no route takes what its caller can do about it. The zero
// Detail: nothing comes near.
func (h Hint) Detail(method string) decision.Detail {
	switch {
	case h.Methods != "":
		return decision.Detail{Field: "method", Issue: decision.Cut(method, maxMethod) + " is not mapped here; this path takes " + spoken(h.Methods), Expected: h.Methods}
	case h.Path == "":
		return decision.Detail{}
	case h.Why == Elsewhere:
		return decision.Detail{Field: "path", Issue: whys[Elsewhere] + h.Listener + ", not at this one", Expected: h.expected()}
	}
	return decision.Detail{Field: "path", Issue: whys[h.Why], Expected: h.expected()}
}

// expected is the nearest route, such as GET, HEAD /v1/streams.
func (h Hint) expected() string {
	if h.Takes == "*" {
		return h.Path
	}
	return h.Takes + " " + h.Path
}

// spoken is a list such as "GET, HEAD, DELETE" in words, where HEAD goes without saying.
func spoken(methods string) string {
	list := strings.Split(methods, ", ")
	kept := list[:0]
	for _, m := range list {
		if m != "HEAD" || !has(methods, "GET") {
			kept = append(kept, m)
		}
	}
	last := len(kept) - 1
	if last == 0 {
		return kept[0]
	}
	return strings.Join(kept[:last], ", ") + " and " + kept[last]
}
