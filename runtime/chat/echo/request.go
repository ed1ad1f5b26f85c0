package echo

import (
	"encoding/json"
	"strconv"
	"strings"

	"sluice.dev/sluice/filters/caps/jsonscan"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/runtime/chat"
)

// Bounds of what the model reads.
const (
	maxTools     = 128 // of a request, as public providers have it
	maxArguments = 128 // of a call; those beyond are left out
	maxText      = 1024
)

// request is what the model reads of a request.
type request struct {
	text   string // of the last message
	user   bool   // it is the user's
	tools  []tool
	mode   string // tool_choice, if it is a word
	forced string // the name in tool_choice, if it is an object
}

// tool is a tool, as far as a call needs to know it.
type tool struct {
	Function struct {
		Name       string `json:"name"`
		Parameters struct {
			Properties map[string]struct {
				Type string            `json:"type"`
				Enum []json.RawMessage `json:"enum"`
			} `json:"properties"`
			Required []string `json:"required"`
		} `json:"parameters"`
	} `json:"function"`
}

// read takes what the model reads out of a body, which the caps have let
// through. Each byte of it is looked at a few times, whatever the number of
// messages and tools, and only the last message and the tools are decoded. It
// fails with a *chat.Refusal.
func read(body []byte) (r request, err error) {
	if bad := jsonscan.Validate(body, jsonscan.MaxDepth); bad != nil {
		return r, refuse("body", "is not valid JSON", "a JSON object")
	}
	root := jsonscan.Root(body)
	if root.Kind(body) != jsonscan.Object {
		return r, refuse("body", "is not an object", "a JSON object")
	}
	for w := jsonscan.Members(body, root); w.Step(); {
		list := w.Kind(body) == jsonscan.Array
		switch {
		case list && jsonscan.Equal(w.Name, "messages"):
			r.readLast(body, w.Value)
		case list && jsonscan.Equal(w.Name, "tools"):
			if r.tools, err = readTools(body, w.Value); err != nil {
				return r, err
			}
		case jsonscan.Equal(w.Name, "tool_choice"):
			var forced tool
			if json.Unmarshal(body[w.From:w.To], &r.mode) != nil {
				_ = json.Unmarshal(body[w.From:w.To], &forced) // an object names a function
			}
			r.forced = forced.Function.Name
		}
	}
	return r, nil
}

func refuse(field, issue, expected string) error {
	return &chat.Refusal{Err: apierror.Invalid([]decision.Detail{{Field: field, Issue: issue, Expected: expected}})}
}

// readLast reads the message that is answered.
func (r *request) readLast(body []byte, messages jsonscan.Value) {
	var last jsonscan.Value
	for w := jsonscan.Members(body, messages); w.Step(); {
		last = w.Value
	}
	var m struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if last.To > 0 {
		_ = json.Unmarshal(body[last.From:last.To], &m) // what has another form has no text
	}
	r.text, r.user = text(m.Content), m.Role == "user"
}

// readTools decodes the tools.
func readTools(body []byte, list jsonscan.Value) (tools []tool, err error) {
	for w := jsonscan.Members(body, list); w.Step(); {
		if len(tools) == maxTools {
			return nil, refuse("tools", "are too many", "at most "+strconv.Itoa(maxTools))
		}
		var t tool
		if err := json.Unmarshal(body[w.From:w.To], &t); err != nil {
			return nil, refuse("tools["+strconv.Itoa(len(tools))+"]", "is not a tool", "an object with a function")
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// text is the content, or the texts of its parts.
func text(content []byte) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(content, &parts) // anything else has no text
	var all strings.Builder
	for _, p := range parts {
		all.WriteString(p.Text)
	}
	return all.String()
}

// called returns the tool that the answer must call, if any: of those that the
// request forces, or whose name is a word of the user's, the first.
func (r request) called() (tool, bool) {
	if r.mode == "none" {
		return tool{}, false
	}
	if r.mode == "required" || r.forced != "" {
		for _, t := range r.tools {
			if r.forced == "" || r.forced == t.Function.Name {
				return t, true
			}
		}
		return tool{}, false
	}
	if !r.user || len(r.tools) == 0 {
		return tool{}, false
	}
	first := map[string]int{}
	for i := len(r.tools) - 1; i >= 0; i-- {
		first[r.tools[i].Function.Name] = i
	}
	delete(first, "")
	found := len(r.tools)
	for word := range strings.FieldsFuncSeq(r.text, func(c rune) bool { return !inName(c) }) {
		if i, ok := first[word]; ok {
			found = min(found, i)
		}
	}
	if found == len(r.tools) {
		return tool{}, false
	}
	return r.tools[found], true
}

// inName reports whether c may stand in a tool's name.
func inName(c rune) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// arguments fills what the tool requires, by type; texts are the beginning of
// text.
func (t tool) arguments(text string) map[string]any {
	text = strings.ToValidUTF8(text[:min(len(text), maxText)], "")
	args := map[string]any{}
	required := t.Function.Parameters.Required
	for _, name := range required[:min(len(required), maxArguments)] {
		p := t.Function.Parameters.Properties[name]
		switch {
		case len(p.Enum) > 0:
			args[name] = p.Enum[0]
		case p.Type == "integer", p.Type == "number":
			args[name] = 1
		case p.Type == "boolean":
			args[name] = true
		case p.Type == "array":
			args[name] = []any{}
		case p.Type == "object":
			args[name] = map[string]any{}
		default:
			args[name] = text
		}
	}
	return args
}
