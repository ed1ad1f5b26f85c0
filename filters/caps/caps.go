// Package caps holds a chat completion request within bounds (contract 8.2 to
// contract 8.5) and changes nothing else of it: unknown members, their order,
// the spelling of numbers and the escapes in strings go through byte for byte.
//
// The filter in Envoy and the runtime both call Apply, which is idempotent. It
// works on places in the text and holds no copy of any value but the model's
// name, so that what it costs is bounded by the size of the body: see Apply.
//
// What is checked is what the provider reads. Parsers differ on names that
// occur twice and on names in another case, so at the top level only the last
// occurrence of a name that matters here is kept, and its spellings in another
// case are removed; below it, the rules hold for each occurrence.
package caps

import "sluice.dev/sluice/filters/decision"

// Bounds of contract 8.3 and contract 8.4, and of our own where they set none.
const (
	DefaultMaxBytes   = 10 << 20 // of a body
	DefaultMaxDepth   = 128      // of nesting
	DefaultMaxTokens  = 1024     // max_tokens where omitted
	DefaultCompletion = 4096     // the most that max_completion_tokens and max_tokens may be
	DescriptionLimit  = 200      // characters of a tool's description
	maxChoices        = 128      // of n
	maxMessages       = 2048     // of a request
	maxParts          = 4096     // of the content of all messages
	maxTools          = 128      // of a request, and functions as many
	maxRemoved        = 64       // members taken out at the top level
	maxEdits          = 4096     // changes of a body
	maxDetails        = 20       // of bad fields in one answer
)

// Fallback replaces a system reminder with an available_skills section.
const Fallback = "<system-reminder>Skills are not available here. Continue without them.</system-reminder>"

// StripHeader is the request header that asks, with the value 1, for a request
// without its tools.
const StripHeader = "x-service-strip-tools"

// Options of Apply. The zero value enforces the bounds above.
type Options struct {
	StripTools    bool
	MaxBytes      int // 0: DefaultMaxBytes
	MaxDepth      int // 0: DefaultMaxDepth
	MaxTokens     int // max_tokens where omitted; 0: DefaultMaxTokens
	MaxCompletion int // 0: DefaultCompletion
}

// Report says what a request asks for once it is capped, and what was done to
// it.
type Report struct {
	Model        string // decoded
	Limit        int    // tokens of one choice: max_completion_tokens, else max_tokens
	Choices      int    // n, 1 where omitted
	Tools        int    // tools that the request keeps
	Stripped     bool   // tools were removed
	Descriptions int    // that were cut
	Reminders    int    // that were replaced
	Changed      bool   // the result differs from the body
}

// Problem is why a body is refused.
type Problem struct {
	Code    decision.Code     // InvalidRequest or TooLarge
	Details []decision.Detail // all bad fields, twenty at most
}

// Error returns the code and the first detail.
func (p *Problem) Error() string {
	s := string(p.Code)
	if len(p.Details) > 0 {
		s += ": " + p.Details[0].Field + " " + p.Details[0].Issue
	}
	return s
}

// TooLarge refuses a body of more than limit bytes.
func TooLarge(limit int) *Problem {
	return &Problem{Code: decision.TooLarge, Details: []decision.Detail{decision.LargeBody(uint64(limit))}}
}

// Apply appends to dst the capped form of body, which must be a JSON object
// with a model and messages. On a Problem dst is returned as it was.
//
// It takes time linear in the body, and allocates at most 8 bytes for each byte
// of it, and 16 KiB: the result, and up to maxEdits notes of what changes.
func Apply(dst, body []byte, opts Options) ([]byte, Report, *Problem) {
	opts = opts.withDefaults()
	if len(body) > opts.MaxBytes {
		return dst, Report{}, TooLarge(opts.MaxBytes)
	}
	r := request{body: body, opts: opts}
	r.read()
	if len(r.bad) > 0 {
		return dst, Report{}, &Problem{Code: decision.InvalidRequest, Details: r.bad}
	}
	r.report.Changed = len(r.edits) > 0
	return r.edits.Apply(dst, body), r.report, nil
}

// withDefaults puts the package's bounds where o has none of its own.
func (o Options) withDefaults() Options {
	for _, d := range [...]struct {
		field *int
		value int
	}{
		{&o.MaxBytes, DefaultMaxBytes}, {&o.MaxDepth, DefaultMaxDepth},
		{&o.MaxTokens, DefaultMaxTokens}, {&o.MaxCompletion, DefaultCompletion},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return o
}
