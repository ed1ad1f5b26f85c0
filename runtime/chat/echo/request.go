package echo

import (
	"encoding/json"
	"strings"
)

// request is what the model reads of a request.
type request struct {
	Messages   []message       `json:"messages"`
	Tools      []tool          `json:"tools"`
	ToolChoice json.RawMessage `json:"tool_choice"`
}

// message is a message; its content may have any of the forms there are.
type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
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

// last is the message that is answered.
func (r request) last() message {
	if len(r.Messages) == 0 {
		return message{}
	}
	return r.Messages[len(r.Messages)-1]
}

// text is the content, or the texts of its parts.
func (m message) text() string {
	var s string
	if json.Unmarshal(m.Content, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(m.Content, &parts) // anything else has no text
	for _, p := range parts {
		s += p.Text
	}
	return s
}

// called returns the tool that the answer must call, if any.
func (r request) called(last message) (tool, bool) {
	// tool_choice is a word, or an object that names a function.
	var mode string
	var forced tool
	if json.Unmarshal(r.ToolChoice, &mode) != nil {
		_ = json.Unmarshal(r.ToolChoice, &forced) // an object names a function
	}
	for _, t := range r.Tools {
		named := last.Role == "user" && t.Function.Name != "" && strings.Contains(last.text(), t.Function.Name)
		if mode == "none" || forced.Function.Name != "" && forced.Function.Name != t.Function.Name {
			continue
		}
		if mode == "required" || named || forced.Function.Name != "" {
			return t, true
		}
	}
	return tool{}, false
}

// arguments fills what the tool requires, by type.
func (t tool) arguments(text string) map[string]any {
	args := map[string]any{}
	for _, name := range t.Function.Parameters.Required {
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
