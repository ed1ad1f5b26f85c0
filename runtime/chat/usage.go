package chat

import (
	"strconv"

	"sluice.dev/sluice/filters/caps/jsonscan"
)

// usageMarker is the name of the usage on the finish chunk (contract 8.7).
const usageMarker = "x-service-usage"

// Usage is what a completion took.
type Usage struct {
	Prompt     int
	Completion int
	Estimated  bool // counted here, because the provider did not say
	// Refused says that no completion came of it: the repetition of such a request, by its
	// Idempotency-Key, is another one, and is charged for itself.
	Refused bool

	raw string // as the provider wrote it, with whatever it adds
}

// Total returns the tokens of prompt and completion.
func (u Usage) Total() int { return u.Prompt + u.Completion }

// JSON returns the usage object. What a provider adds to it stays.
func (u Usage) JSON() string {
	if u.raw != "" {
		return u.raw
	}
	s := `{"prompt_tokens":` + strconv.Itoa(u.Prompt) + `,"completion_tokens":` + strconv.Itoa(u.Completion) +
		`,"total_tokens":` + strconv.Itoa(u.Total())
	if u.Estimated {
		s += `,"estimated":true`
	}
	return s + "}"
}

// parseUsage reads a provider's usage object; ok is false if it does not say
// how many tokens there were.
func parseUsage(b []byte, v jsonscan.Value) (u Usage, ok bool) {
	if v.Kind(b) != jsonscan.Object {
		return Usage{}, false
	}
	// -1 is "not said": a provider may well say 0.
	prompt, completion, total := -1, -1, -1
	for w := jsonscan.Members(b, v); w.Step(); {
		for name, field := range map[string]*int{"prompt_tokens": &prompt, "completion_tokens": &completion, "total_tokens": &total} {
			if jsonscan.Equal(w.Name, name) && w.Kind(b) == jsonscan.Number {
				*field, _ = jsonscan.Integer(b[w.From:w.To])
			}
		}
	}
	if prompt < 0 || completion < 0 {
		return Usage{}, false
	}
	u = Usage{Prompt: prompt, Completion: completion}
	if total == u.Total() {
		u.raw = string(b[v.From:v.To])
	}
	return u, true
}
