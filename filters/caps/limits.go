package caps

import (
	"strconv"

	"sluice.dev/sluice/filters/caps/jsonscan"
)

// issueMissing is the issue of a required field that is not there.
const issueMissing = "is missing"

// readModel takes the model's name. Its length is bounded in bytes of JSON: 256
// characters in escapes of surrogate pairs would still fit.
func (r *request) readModel() {
	v, ok := r.value(model)
	switch {
	case !ok:
		r.refuse("model", issueMissing, "a model's name")
	case v.Kind(r.body) != jsonscan.String || v.To-v.From <= 2 || v.To-v.From > 1024:
		r.refuse("model", "is not a name", "a string of 1 to 256 characters")
	default:
		r.report.Model = string(jsonscan.Append(nil, v.Text(r.body)))
	}
}

// readStream forces stream and include_usage. Both are ours to say, so
// whatever the client wrote there is not an error.
func (r *request) readStream(tail string) string {
	if r.seen[stream] {
		r.replace(r.last[stream].Value, "true")
	} else {
		tail += `,"stream":true`
	}
	if !r.seen[streamOptions] {
		return tail + `,"stream_options":{"include_usage":true}`
	}
	v := r.last[streamOptions].Value
	if v.Kind(r.body) != jsonscan.Object {
		r.replace(v, `{"include_usage":true}`)
		return tail
	}
	r.includeUsage(v)
	return tail
}

// includeUsage sets include_usage in the options v, and leaves the others as
// they are.
func (r *request) includeUsage(v jsonscan.Value) {
	const word = "include_usage"
	found, comma := false, ""
	for w := jsonscan.Members(r.body, v); w.Step(); {
		comma = ","
		if jsonscan.Fold(w.Name, word) {
			r.replace(w.Value, "true")
			found = found || jsonscan.Equal(w.Name, word)
		}
	}
	if !found {
		r.edit(v.From+1, v.From+1, `"`+word+`":true`+comma)
	}
}

// readLimits bounds the tokens of a completion. max_tokens is given its default
// whenever it is omitted; it and max_completion_tokens, which goes before it where
// both are there, are clamped (contract 8.3, 8.11).
func (r *request) readLimits(tail string) string {
	// null counts as omitted: clients send it for fields that are not set.
	limit, ok := r.integer(maxTokens, jsonscan.Ceiling)
	if !ok {
		limit = r.opts.MaxTokens
		if text := strconv.Itoa(limit); r.seen[maxTokens] {
			r.replace(r.last[maxTokens].Value, text)
		} else {
			tail += `,"max_tokens":` + text
		}
	} else if limit > r.opts.MaxCompletion {
		limit = r.opts.MaxCompletion
		r.replace(r.last[maxTokens].Value, strconv.Itoa(limit))
	}
	// The report has the limit that holds, not the one that was asked for.
	if n, ok := r.integer(maxCompletion, jsonscan.Ceiling); ok {
		if limit = n; n > r.opts.MaxCompletion {
			limit = r.opts.MaxCompletion
			r.replace(r.last[maxCompletion].Value, strconv.Itoa(limit))
		}
	}
	r.report.Limit = limit
	r.report.Choices = 1
	if n, ok := r.integer(choices, maxChoices); ok {
		r.report.Choices = n
	}
	return tail
}

// integer reads a member that must be an integer from 1 to most; ok is false
// if it is missing, null or refused.
func (r *request) integer(n name, most int) (v int, ok bool) {
	at, ok := r.value(n)
	if !ok {
		return 0, false
	}
	if at.Kind(r.body) == jsonscan.Number {
		v, ok = jsonscan.Integer(r.body[at.From:at.To])
	} else {
		ok = false
	}
	if !ok || v < 1 || v > most {
		r.refuse(spelling[n], "is out of range", "an integer from 1 to "+strconv.Itoa(most))
		return 0, false
	}
	return v, true
}
