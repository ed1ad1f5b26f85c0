package echo

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/platform/limits/growth"
	"sluice.dev/sluice/runtime/chat"
)

// play runs a request and returns what it says, in short.
func play(t *testing.T, p Provider, r chat.Request) (text, args, finish, usage string) {
	t.Helper()
	s, err := p.Stream(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for {
		data, err := s.Next()
		if errors.Is(err, io.EOF) {
			return text, args, finish, usage
		}
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			Choices []struct {
				Delta struct {
					Content string
					Tools   []struct {
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				Finish string `json:"finish_reason"`
			}
			Usage json.RawMessage
		}
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		usage = string(c.Usage)
		for _, choice := range c.Choices {
			text += choice.Delta.Content
			for _, call := range choice.Delta.Tools {
				args += call.Function.Name + call.Function.Arguments
			}
			if choice.Finish != "" {
				finish += choice.Finish
			}
		}
	}
}

func TestEcho(t *testing.T) {
	t.Parallel()
	weather := `"tools":[{"function":{"name":"time"}},{"function":{"name":"weather","parameters":{"properties":{"city":{"type":"string"},"days":{"type":"integer"},
		"unit":{"enum":["C","F"]},"wind":{"type":"boolean"},"tags":{"type":"array"},"more":{"type":"object"}},"required":["city","days","unit","wind","tags","more"]}}}]`
	call := `weather{"city":"the weather?","days":1,"more":{},"tags":[],"unit":"C","wind":true}`
	for name, c := range map[string]struct {
		body               string
		limit, n           int
		text, args, finish string
	}{
		"a text":          {`{"messages":[{"role":"system","content":"x"},{"role":"user","content":"hello wörld 😀"}]}`, 100, 1, "hello wörld 😀", "", "stop"},
		"parts":           {`{"messages":[{"role":"user","content":[{"type":"text","text":"a b"},{"type":"image_url"},{"type":"text","text":" c"}]}]}`, 100, 1, "a b c", "", "stop"},
		"a tool's result": {`{"messages":[{"role":"tool","content":"22 degrees"}],` + weather + `}`, 100, 1, "22 degrees", "", "stop"},
		"too long":        {`{"messages":[{"role":"user","content":"one two three four"}]}`, 2, 1, "one two", "", "length"},
		"at the limit":    {`{"messages":[{"role":"user","content":"one two"}]}`, 2, 1, "one two", "", "stop"},
		"two choices":     {`{"messages":[{"role":"user","content":"one"}]}`, 9, 2, "oneone", "", "stopstop"},
		"no content":      {`{"messages":[{"role":"assistant","content":null}]}`, 9, 1, "", "", "stop"},
		"a tool is named": {`{"messages":[{"role":"user","content":"the weather?"}],` + weather + `}`, 100, 1, "", call, "tool_calls"},
		"none is named":   {`{"messages":[{"role":"user","content":"hi"}],` + weather + `}`, 100, 1, "hi", "", "stop"},
		"choice none":     {`{"messages":[{"role":"user","content":"the weather?"}],"tool_choice":"none",` + weather + `}`, 100, 1, "the weather?", "", "stop"},
		"choice required": {`{"messages":[{"role":"user","content":"hi"}],"tool_choice":"required",` + weather + `}`, 100, 1, "", "time{}", "tool_calls"},
		"choice of one":   {`{"messages":[{"role":"user","content":"the weather?"}],"tool_choice":{"function":{"name":"weather"}},` + weather + `}`, 100, 1, "", call, "tool_calls"},
	} {
		text, args, finish, usage := play(t, Provider{}, chat.Request{Body: []byte(c.body), Model: Name, Limit: c.limit, Choices: c.n})
		if text != c.text || args != c.args || finish != c.finish || !strings.Contains(usage, "total_tokens") {
			t.Errorf("%s: %q %q %s %s", name, text, args, finish, usage)
		}
	}
}

func TestUsageCountsTokens(t *testing.T) {
	t.Parallel()
	r := chat.Request{Body: []byte(`{"messages":[{"role":"user","content":"one two three"}]}`), Model: Name, Limit: 2, Choices: 2}
	_, _, _, usage := play(t, Provider{}, r)
	if !strings.Contains(usage, `"completion_tokens":4`) {
		t.Errorf("usage %s", usage)
	}
	_, _, _, again := play(t, Provider{}, r)
	if again != usage {
		t.Errorf("another time %s", again)
	}
}

func TestSlowModelWaits(t *testing.T) {
	t.Parallel()
	body := []byte(`{"messages":[{"role":"user","content":"a b"}]}`)
	s, err := Provider{}.Stream(t.Context(), chat.Request{Body: body, Model: SlowName, Limit: 9, Choices: 1})
	if err != nil || s.Ready() {
		t.Errorf("ready at once, %v", err)
	}
	if text, _, _, _ := play(t, Provider{Pace: time.Nanosecond}, chat.Request{Body: body, Model: SlowName, Limit: 9}); text != "a b" {
		t.Errorf("text %q", text)
	}
}

func TestNotJSON(t *testing.T) {
	t.Parallel()
	_, err := Provider{}.Stream(t.Context(), chat.Request{Body: []byte(`{`)})
	if _, ok := errors.AsType[*chat.Refusal](err); !ok {
		t.Errorf("got %v", err)
	}
}

// The request is read once, however many tools there are beside however long a
// text, and the answer is made as it is asked for.
func TestCostIsInProportionToTheRequest(t *testing.T) {
	for name, shape := range map[string]func(n int) string{
		"a long text and all tools": func(n int) string {
			return `{"messages":[{"role":"user","content":"` + strings.Repeat("a b ", n/4) + `"}],"tools":[` + strings.TrimSuffix(strings.Repeat(`{"function":{"name":"x"}},`, maxTools), ",") + `]}`
		},
		"many parts": func(n int) string {
			return `{"messages":[{"role":"user","content":[` + strings.TrimSuffix(strings.Repeat(`{"text":"a"},`, n/13), ",") + `]}]}`
		},
		"many messages": func(n int) string {
			return `{"messages":[` + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"a"},`, n/30), ",") + `]}`
		},
		"much that a tool requires": func(n int) string {
			return `{"messages":[{"role":"user","content":"` + strings.Repeat("é", n/4) + `"}],"tool_choice":"required","tools":[{"function":{"name":"x","parameters":{"required":[` +
				strings.TrimSuffix(strings.Repeat(`"abcdef",`, n/18), ",") + `]}}}]}`
		},
	} {
		for _, n := range []int{64 << 10, 256 << 10} {
			body := []byte(shape(n))
			growth.Linear(t, len(body), 24, 64<<10, func() {
				s, err := Provider{}.Stream(t.Context(), chat.Request{Body: body, Model: Name, Limit: 1 << 30, Choices: 128})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				for range 10 {
					if _, err := s.Next(); err != nil {
						t.Fatalf("%s: %v", name, err)
					}
				}
			})
		}
	}
}

func TestToolsAreBounded(t *testing.T) {
	t.Parallel()
	for n, refused := range map[int]bool{maxTools: false, maxTools + 1: true} {
		body := `{"messages":[{"role":"user","content":"a"}],"tools":[` + strings.TrimSuffix(strings.Repeat(`{},`, n), ",") + `]}`
		_, err := Provider{}.Stream(t.Context(), chat.Request{Body: []byte(body), Limit: 9})
		if _, got := errors.AsType[*chat.Refusal](err); got != refused {
			t.Errorf("%d tools: %v", n, err)
		}
	}
}

func TestTheAnswerEndsWithTheClient(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	s, err := Provider{}.Stream(ctx, chat.Request{Body: []byte(`{"messages":[{"role":"user","content":"a b c"}]}`), Limit: 9})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(); err != nil {
		t.Fatal(err)
	}
	leave()
	if _, err := s.Next(); !errors.Is(err, context.Canceled) {
		t.Errorf("%v behind the client's end", err)
	}
}

// FuzzRead holds what is read of any request to a cost in proportion to it.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"text":"weather"},{}]}],"tools":[{"function":{"name":"weather","parameters":{"properties":{"a":{"enum":[1]}},"required":["a"]}}}],"tool_choice":{"function":{"name":"x"}}}`))
	f.Add([]byte(`{"messages":[7],"tools":[7],"tool_choice":7} `))
	f.Fuzz(func(t *testing.T, body []byte) {
		growth.Linear(t, len(body), 128, 64<<10, func() {
			if r, err := read(body); err == nil {
				a := r.answer(9)
				for next := a.deltas(new(int)); ; {
					if d, ok := next(); !ok {
						break
					} else if !json.Valid([]byte(d)) {
						t.Fatalf("%q gives %q", body, d)
					}
				}
			}
		})
	})
}
