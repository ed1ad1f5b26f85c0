// Package echo is the built-in model: it answers with the last message, token
// by token, always alike. It serves local use and tests, where a paid provider
// would be slow, costly and never the same twice.
package echo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/filters/decision"
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

// Stream answers r. Its id depends on the request alone.
func (p Provider) Stream(ctx context.Context, r chat.Request) (chat.Stream, error) {
	var req request
	if err := json.Unmarshal(r.Body, &req); err != nil {
		return nil, &chat.Refusal{Err: &controlplane.Error{Code: decision.InvalidRequest, Cause: err}}
	}
	s := &stream{ctx: ctx, head: `{"id":"chatcmpl-echo","object":"chat.completion.chunk","created":0,"model":` + quote(r.Model) + ","}
	if r.Model == SlowName {
		if s.pace = p.Pace; s.pace == 0 {
			s.pace = slowPace
		}
	}
	s.script(req.answer(r.Limit), tokens.Prompt(r.Body), max(1, r.Choices))
	return s, nil
}

// stream plays a script.
type stream struct {
	ctx    context.Context
	head   string // of each chunk
	pace   time.Duration
	events []string // the rest of each chunk
	buf    []byte
}

// Next returns the next chunk, after the model's pace.
func (s *stream) Next() ([]byte, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	if len(s.events) == 0 {
		return nil, io.EOF
	}
	if s.pace > 0 {
		select {
		case <-s.ctx.Done():
			return nil, s.ctx.Err()
		case <-time.After(s.pace):
		}
	}
	s.buf = append(append(s.buf[:0], s.head...), s.events[0]...)
	s.events = s.events[1:]
	return s.buf, nil
}

// Ready is always true for the fast model.
func (s *stream) Ready() bool { return s.pace == 0 && len(s.events) > 0 }

// Close has nothing to give back.
func (s *stream) Close() error { return nil }

// script writes all events: for each choice the role, the deltas and the
// finish, then the usage.
func (s *stream) script(a answer, prompt, choices int) {
	for i := range choices {
		add := func(delta, finish string) {
			s.events = append(s.events, fmt.Sprintf(`"choices":[{"index":%d,"delta":%s,"finish_reason":%s}]}`, i, delta, finish))
		}
		add(`{"role":"assistant","content":""}`, "null")
		for _, d := range a.deltas {
			add(d, "null")
		}
		add("{}", quote(a.finish))
	}
	done := a.tokens * choices
	s.events = append(s.events, fmt.Sprintf(`"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`,
		prompt, done, prompt+done))
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
type answer struct {
	deltas []string // JSON
	finish string
	tokens int
}

// answer echoes the last message, or calls a tool if the request forces one or
// the last message of the user names one.
func (r request) answer(limit int) answer {
	last := r.last()
	if t, ok := r.called(last); ok {
		return t.call(last.text())
	}
	pieces := tokens.Split(last.text(), limit+1)
	a := answer{finish: "stop"}
	if len(pieces) > limit {
		pieces, a.finish = pieces[:limit], "length"
	}
	a.tokens = len(pieces)
	for _, p := range slices.DeleteFunc(pieces, func(p string) bool { return p == "" }) {
		a.deltas = append(a.deltas, `{"content":`+quote(p)+`}`)
	}
	return a
}

// call is a call of the tool, its arguments in two pieces, as providers send
// them.
func (t tool) call(text string) answer {
	args := quote(t.arguments(text))
	half := strings.ToValidUTF8(args[:len(args)/2], "")
	piece := func(call string) string { return `{"tool_calls":[{"index":0,` + call + `}]}` }
	arguments := func(text string) string { return `"function":{"arguments":` + quote(text) + `}` }
	return answer{finish: "tool_calls", tokens: tokens.Count(t.Function.Name + args), deltas: []string{
		piece(`"id":"call_echo","type":"function","function":{"name":` + quote(t.Function.Name) + `,"arguments":""}`),
		piece(arguments(half)),
		piece(arguments(args[len(half):])),
	}}
}
