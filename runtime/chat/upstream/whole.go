package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"sluice.dev/sluice/filters/caps/jsonscan"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// Bounds of an answer in one piece.
const (
	maxDepth   = 64
	maxChoices = 128 // a request has no more
	maxCalls   = 128 // tool calls of a choice
)

// whole turns the answer of a provider that does not stream into two chunks for
// each choice, and the usage. It reads at most maxBody bytes, in one pass
// whatever their form, and the chunks hold each of them once.
func whole(r io.Reader) (events [][]byte, err error) {
	b, err := io.ReadAll(io.LimitReader(r, maxBody))
	if err != nil {
		return nil, unreadable(err)
	}
	if bad := jsonscan.Validate(b, maxDepth); bad != nil {
		return nil, unreadable(errors.New(bad.Issue))
	}
	var compact bytes.Buffer // an event of one line each
	if err := json.Compact(&compact, b); err != nil {
		return nil, unreadable(err)
	}
	a := answer{data: compact.Bytes()}
	if !a.read() || !a.failed && a.choices == 0 {
		return nil, unreadable(errors.New("there are no choices, or too many"))
	}
	return a.events, nil
}

func unreadable(cause error) error {
	return &apierror.Error{Code: decision.BadGateway, Message: "The provider's answer does not parse.", Cause: cause}
}

// answer is an answer in one piece on its way to being chunks.
type answer struct {
	data    []byte
	head    string // of each chunk: its members but for choices
	choices int
	failed  bool // it is an error
	events  [][]byte
}

// read makes the chunks; ok is false if the answer is none.
func (a *answer) read() (ok bool) {
	root := jsonscan.Root(a.data)
	if root.Kind(a.data) != jsonscan.Object {
		return false
	}
	var choices, usage, failure jsonscan.Value
	a.head = `{"object":"chat.completion.chunk"`
	for _, name := range [...]string{"id", "created", "model"} {
		if v := a.member(root, name); v.To > 0 && v.To-v.From <= maxHead {
			a.head += `,"` + name + `":` + a.text(v)
		}
	}
	choices, usage, failure = a.member(root, "choices"), a.member(root, "usage"), a.member(root, "error")
	if a.failed = failure.To > 0 && failure.Kind(a.data) != jsonscan.Null; a.failed {
		a.add(`{"error":`, a.text(failure), `}`)
		return true
	}
	if choices.To == 0 || choices.Kind(a.data) != jsonscan.Array {
		return false
	}
	for w := jsonscan.Members(a.data, choices); w.Step(); a.choices++ {
		if a.choices == maxChoices || w.Kind(a.data) != jsonscan.Object || !a.choice(w.Value) {
			return false
		}
	}
	if usage.To > 0 && usage.Kind(a.data) != jsonscan.Null {
		a.add(a.head, `,"choices":[],"usage":`, a.text(usage), `}`)
	}
	return true
}

// maxHead bounds a member that each chunk repeats.
const maxHead = 1 << 10

// choice makes the chunks of one choice. What it has besides its message, log
// probabilities for instance, goes along in the first; its finish has the other.
func (a *answer) choice(v jsonscan.Value) (ok bool) {
	index, finish, delta, rest := "0", "null", "{}", &strings.Builder{}
	for w := jsonscan.Members(a.data, v); w.Step(); {
		switch {
		case jsonscan.Equal(w.Name, "index") && w.To-w.From <= maxHead:
			index = a.text(w.Value)
		case jsonscan.Equal(w.Name, "finish_reason") && w.To-w.From <= maxHead:
			finish = a.text(w.Value)
		case jsonscan.Equal(w.Name, "message"):
			if delta, ok = a.numbered(w.Value); !ok {
				return false
			}
		case jsonscan.Equal(w.Name, "delta"):
		default:
			rest.WriteString(`,"` + string(w.Name) + `":` + a.text(w.Value))
		}
	}
	a.add(a.head, `,"choices":[{"index":`, index, `,"delta":`, delta, `,"finish_reason":null`, rest.String(), `}]}`)
	a.add(a.head, `,"choices":[{"index":`, index, `,"delta":{},"finish_reason":`, finish, `}]}`)
	return true
}

// numbered gives each tool call of a message the index that a delta's has; ok
// is false when there are too many.
func (a *answer) numbered(message jsonscan.Value) (delta string, ok bool) {
	if message.Kind(a.data) != jsonscan.Object {
		return "{}", true
	}
	calls := a.member(message, "tool_calls")
	if calls.To == 0 || calls.Kind(a.data) != jsonscan.Array {
		return a.text(message), true
	}
	var edits jsonscan.Edits
	n := 0
	for w := jsonscan.Members(a.data, calls); w.Step(); n++ {
		if n == maxCalls {
			return "", false
		}
		if w.Kind(a.data) == jsonscan.Object && a.member(w.Value, "index").To == 0 {
			comma := ","
			if jsonscan.Space(a.data, w.From+1) == w.To-1 {
				comma = ""
			}
			edits.Add(w.From+1-message.From, w.From+1-message.From, `"index":`+strconv.Itoa(n)+comma)
		}
	}
	return string(edits.Apply(nil, a.data[message.From:message.To])), true
}

// member returns an object's last member of a name, as parsers read it.
func (a *answer) member(v jsonscan.Value, name string) (found jsonscan.Value) {
	for w := jsonscan.Members(a.data, v); w.Step(); {
		if jsonscan.Equal(w.Name, name) {
			found = w.Value
		}
	}
	return found
}

func (a *answer) text(v jsonscan.Value) string { return string(a.data[v.From:v.To]) }

// add adds an event made of parts.
func (a *answer) add(parts ...string) { a.events = append(a.events, []byte(strings.Join(parts, ""))) }

// played is a stream of an answer that comes in one piece.
type played struct {
	source io.ReadCloser
	read   bool
	events [][]byte
}

// Next returns the next event; the first time it waits for all of the answer.
func (p *played) Next() (event []byte, err error) {
	if !p.read {
		p.read = true
		if p.events, err = whole(p.source); err != nil {
			return nil, err
		}
	}
	if len(p.events) == 0 {
		return nil, io.EOF
	}
	next := p.events[0]
	p.events = p.events[1:]
	return next, nil
}

// Ready is true up to the end.
func (p *played) Ready() bool { return len(p.events) > 0 }

// Close gives the connection back.
func (p *played) Close() error { return p.source.Close() }

// oneLimit takes max_tokens out of a body that has max_completion_tokens. The
// caps have left at most one of each.
func oneLimit(body []byte) []byte {
	var limit, newer jsonscan.Member
	root := jsonscan.Root(body)
	before := -1 // the end of the member before max_tokens
	for w, end := jsonscan.Members(body, root), -1; w.Step(); end = w.To {
		switch {
		case jsonscan.Equal(w.Name, "max_tokens"):
			limit, before = w.Member, end
		case jsonscan.Equal(w.Name, "max_completion_tokens") && w.Kind(body) == jsonscan.Number:
			newer = w.Member
		}
	}
	if limit.Start == 0 || newer.Start == 0 {
		return body
	}
	// As in the caps: the comma behind goes along, or, at the end, the one before.
	var e jsonscan.Edits
	if limit.Next >= 0 {
		e.Add(limit.Start, limit.Next, "")
	} else {
		e.Add(before, limit.To, "")
	}
	return e.Apply(nil, body)
}
