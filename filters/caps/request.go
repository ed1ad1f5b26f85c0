package caps

import (
	"strconv"

	"sluice.dev/sluice/filters/caps/jsonscan"
	"sluice.dev/sluice/filters/decision"
)

// name numbers the top-level members that matter here.
type name int

const (
	model name = iota
	messages
	stream
	streamOptions
	maxTokens
	maxCompletion
	choices
	tools
	functions
	toolChoice
	functionCall
	parallelCalls
	names // how many there are
	other = names
)

var spelling = [names]string{
	"model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "n",
	"tools", "functions", "tool_choice", "function_call", "parallel_tool_calls",
}

// request is one body on its way through Apply.
type request struct {
	body     []byte
	opts     Options
	report   Report
	edits    jsonscan.Edits
	overfull bool // more edits were needed than there may be
	bad      []decision.Detail
	parts    int                    // of content so far
	last     [names]jsonscan.Member // the occurrence that counts
	seen     [names]bool
}

// read checks the body and collects the edits that cap it.
func (r *request) read() {
	if err := jsonscan.Validate(r.body, r.opts.MaxDepth); err != nil {
		r.refuse("body", "is not valid JSON: "+err.Issue+" at byte "+strconv.Itoa(err.Offset), "a JSON object")
		return
	}
	root := jsonscan.Root(r.body)
	if root.Kind(r.body) != jsonscan.Object {
		r.refuse("body", "is not an object", "a JSON object")
		return
	}
	end := r.top(root)
	if len(r.bad) > 0 {
		return
	}
	// All are read, whatever the one before said: the caller learns of every
	// bad field at once.
	r.readModel()
	r.readMessages()
	end.text = r.readStream(end.text)
	end.text = r.readLimits(end.text)
	r.readTools()
	if end.text != "" || end.to > end.from {
		r.edit(end.from, end.to, end.text)
	}
}

// tail is the edit at the end of the object.
type tail struct {
	from, to int
	text     string
}

// top walks the members once. It removes those that must not reach the
// provider and returns the tail, where members that are missing go: from behind
// the last member that is kept, over those removed behind it. One is always
// kept, or the request is refused for want of a model.
func (r *request) top(root jsonscan.Value) tail {
	end := tail{from: root.From + 1, to: root.From + 1}
	for w := jsonscan.Members(r.body, root); w.Step(); {
		if len(r.edits) > maxRemoved { // only what is removed is noted so far
			r.refuse("body", "repeats the same members too often", "each member once")
			break
		}
		n, exact := lookup(w.Name)
		if n != other && (!exact || r.strips(n)) {
			r.remove(w.Member)
			end.to = w.To
			continue
		}
		if n != other {
			if r.seen[n] {
				r.remove(r.last[n])
			}
			r.last[n], r.seen[n] = w.Member, true
		}
		end.from, end.to = w.To, w.To
	}
	return end
}

// remove takes out a member with the comma behind it. The last one has none:
// then it is the tail's edit that covers it.
func (r *request) remove(m jsonscan.Member) {
	if m.Next >= 0 {
		r.edit(m.Start, m.Next, "")
	}
}

// strips reports whether the caller asked for n to be removed.
func (r *request) strips(n name) bool {
	if !r.opts.StripTools || n < tools {
		return false
	}
	r.report.Stripped = true
	return true
}

// lookup finds the name that a member's raw name spells, in any case.
func lookup(raw []byte) (n name, exact bool) {
	if len(raw) > 128 { // no name is that long, all of it in escapes
		return other, false
	}
	for n := range names {
		if jsonscan.Fold(raw, spelling[n]) {
			return n, jsonscan.Equal(raw, spelling[n])
		}
	}
	return other, false
}

// value returns the value of a member, unless it is missing or null.
func (r *request) value(n name) (jsonscan.Value, bool) {
	v := r.last[n].Value
	return v, r.seen[n] && v.Kind(r.body) != jsonscan.Null
}

// replace puts text in the place of v, unless it stands there already: a
// request that is right is not touched.
func (r *request) replace(v jsonscan.Value, text string) {
	if string(r.body[v.From:v.To]) != text {
		r.edit(v.From, v.To, text)
	}
}

// edit notes a change, or refuses a body that needs too many of them.
func (r *request) edit(from, to int, text string) {
	if len(r.edits) < maxEdits {
		r.edits.Add(from, to, text)
	} else if !r.overfull {
		r.overfull = true
		r.refuse("body", "needs too many changes", "at most "+strconv.Itoa(maxEdits)+" reminders, descriptions and options to change")
	}
}

// refuse notes a bad field. Beyond the bound more of them say nothing new, and
// an answer must not grow with the request.
func (r *request) refuse(field, issue, expected string) {
	if len(r.bad) < maxDetails {
		r.bad = append(r.bad, decision.Detail{Field: field, Issue: issue, Expected: expected})
	}
}
