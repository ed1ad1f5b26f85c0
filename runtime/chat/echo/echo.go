// Package echo is the built-in model: it answers with the last message, token
// by token, always alike. It serves local use and tests, where a paid provider
// would be slow, costly and never the same twice.
package echo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"sluice.dev/sluice/runtime/chat"
	"sluice.dev/sluice/runtime/chat/tokens"
)

// The models.
const (
	Name     = "echo-1"      // as fast as it can
	SlowName = "echo-1-slow" // a token every 50 ms
)

// slowPace is the time between the tokens of SlowName.
const slowPace = 50 * time.Millisecond

// Models lists the models, for a chat.Target.
func Models() []string { return []string{Name, SlowName} }

// Provider makes the completions. The zero value is ready.
type Provider struct {
	// Pace is the time before each chunk of SlowName; 0: 50 ms.
	Pace time.Duration
}

// Credential is none: anybody may ask.
func (Provider) Credential(chat.Caller) (string, error) { return "", nil }

// Stream answers r. Its id depends on the request alone. What it holds is in
// proportion to the request, however long the answer: chunks are made as they
// are asked for.
func (p Provider) Stream(ctx context.Context, r chat.Request) (chat.Stream, error) {
	req, err := read(r.Body)
	if err != nil {
		return nil, err
	}
	s := &stream{
		ctx: ctx, head: `{"id":"chatcmpl-echo","object":"chat.completion.chunk","created":0,"model":` + quote(r.Model) + ",",
		body: r.Body, choices: max(1, r.Choices), answer: req.answer(r.Limit),
	}
	s.state = s.role
	if r.Model == SlowName {
		if s.pace = p.Pace; s.pace == 0 {
			s.pace = slowPace
		}
	}
	return s, nil
}

// stream makes the chunks, one after the other: for each choice the role, the
// deltas and the finish, then the usage.
type stream struct {
	ctx     context.Context
	head    string // of each chunk
	pace    time.Duration
	body    []byte
	buf     []byte
	answer  answer
	choices int
	choice  int                   // the present one
	deltas  func() (string, bool) // of the present choice
	tokens  int
	state   func() string // makes the rest of the next chunk; nil: it is over
}

// Next returns the next chunk, after the model's pace.
func (s *stream) Next() ([]byte, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	if s.state == nil {
		return nil, io.EOF
	}
	if s.pace > 0 {
		select {
		case <-s.ctx.Done():
			return nil, s.ctx.Err()
		case <-time.After(s.pace):
		}
	}
	s.buf = append(append(s.buf[:0], s.head...), s.state()...)
	return s.buf, nil
}

// Ready is always true for the fast model.
func (s *stream) Ready() bool { return s.pace == 0 && s.state != nil }

// Close has nothing to give back.
func (s *stream) Close() error { return nil }

// role begins a choice.
func (s *stream) role() string {
	s.deltas = s.answer.deltas(&s.tokens)
	s.state = s.delta
	return s.chunk(`{"role":"assistant","content":""}`, "null")
}

// delta is the next piece of a choice, or its finish.
func (s *stream) delta() string {
	if d, ok := s.deltas(); ok {
		return s.chunk(d, "null")
	}
	last := s.chunk("{}", quote(s.answer.finish()))
	if s.state = s.role; s.choice == s.choices-1 {
		s.state = s.usage
	}
	s.choice++
	return last
}

// usage is the last chunk.
func (s *stream) usage() string {
	s.state = nil
	prompt := tokens.Prompt(s.body)
	return fmt.Sprintf(`"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`, prompt, s.tokens, prompt+s.tokens)
}

func (s *stream) chunk(delta, finish string) string {
	return fmt.Sprintf(`"choices":[{"index":%d,"delta":%s,"finish_reason":%s}]}`, s.choice, delta, finish)
}

// quote returns v as JSON. Strings, numbers and maps of them cannot fail.
func quote(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("echo: %v", err))
	}
	return string(b)
}

// answer is what the model says.
type answer interface {
	// deltas returns a function that gives one delta after the other, as JSON, and
	// adds what they take to tokens.
	deltas(tokens *int) func() (string, bool)
	// finish is the reason of the end, once deltas have ended.
	finish() string
}

// answer echoes the last message, or calls a tool if the request forces one or
// the last message of the user names one.
func (r request) answer(limit int) answer {
	if t, ok := r.called(); ok {
		return t.call(r.text)
	}
	return &said{text: r.text, limit: limit}
}

// said is a text, token by token, up to a limit.
type said struct {
	text  string
	limit int
	cut   bool
}

func (a *said) deltas(count *int) func() (string, bool) {
	a.cut = false
	rest, said := tokens.NewCursor(a.text), 0
	return func() (string, bool) {
		for {
			piece, ok := rest.Next()
			if a.cut = ok && said == a.limit; !ok || a.cut {
				return "", false
			}
			said++
			*count++
			if piece != "" { // else a character goes with a later token
				return `{"content":` + quote(piece) + `}`, true
			}
		}
	}
}

func (a *said) finish() string {
	if a.cut {
		return "length"
	}
	return "stop"
}

// calls is a call of a tool.
type calls struct {
	list   []string
	tokens int
}

func (c calls) deltas(count *int) func() (string, bool) {
	*count += c.tokens
	rest := c.list
	return func() (d string, ok bool) {
		if len(rest) == 0 {
			return "", false
		}
		d, rest = rest[0], rest[1:]
		return d, true
	}
}

func (calls) finish() string { return "tool_calls" }

// call is a call of the tool, its arguments in two pieces, as providers send
// them.
func (t tool) call(text string) answer {
	args := quote(t.arguments(text))
	half := strings.ToValidUTF8(args[:len(args)/2], "")
	piece := func(call string) string { return `{"tool_calls":[{"index":0,` + call + `}]}` }
	arguments := func(text string) string { return `"function":{"arguments":` + quote(text) + `}` }
	return calls{tokens: tokens.Count(t.Function.Name + args), list: []string{
		piece(`"id":"call_echo","type":"function","function":{"name":` + quote(t.Function.Name) + `,"arguments":""}`),
		piece(arguments(half)),
		piece(arguments(args[len(half):])),
	}}
}
