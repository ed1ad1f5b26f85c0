package upstream

import (
	"encoding/json"
	"io"

	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/filters/caps/jsonscan"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/runtime/chat"
)

// whole turns the answer of a provider that does not stream into a stream of
// one chunk for each choice, and the usage.
func whole(r io.Reader) (chat.Stream, error) {
	var v struct {
		ID      string                       `json:"id"`
		Created int64                        `json:"created"`
		Model   string                       `json:"model"`
		Choices []map[string]json.RawMessage `json:"choices"`
		Usage   json.RawMessage              `json:"usage"`
		Error   json.RawMessage              `json:"error"`
	}
	b, err := io.ReadAll(io.LimitReader(r, maxBody))
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	if err != nil || v.Error == nil && len(v.Choices) == 0 {
		return nil, &controlplane.Error{Code: decision.BadGateway, Message: "The provider's answer does not parse.", Cause: err}
	}
	head := map[string]any{"object": "chat.completion.chunk", "created": v.Created, "model": v.Model, "id": v.ID}
	s := &played{}
	if v.Error != nil {
		return s, s.add(map[string]any{"error": v.Error})
	}
	// What a choice has besides its message, log probabilities for instance,
	// goes along in the first chunk; its finish has a chunk of its own.
	for _, c := range v.Choices {
		finish := c["finish_reason"]
		c["delta"] = numbered(c["message"])
		delete(c, "message")
		c["finish_reason"] = json.RawMessage("null")
		if err := s.add(head, "choices", []any{c}); err != nil {
			return nil, err
		}
		if err := s.add(head, "choices", []any{map[string]any{"index": c["index"], "delta": struct{}{}, "finish_reason": finish}}); err != nil {
			return nil, err
		}
	}
	if v.Usage == nil {
		return s, nil
	}
	return s, s.add(head, "choices", []any{}, "usage", v.Usage)
}

// numbered gives each tool call of a message the index that a delta's has.
func numbered(message json.RawMessage) json.RawMessage {
	var m map[string]json.RawMessage
	var calls []map[string]any
	if json.Unmarshal(message, &m) != nil || json.Unmarshal(m["tool_calls"], &calls) != nil {
		if message == nil {
			return json.RawMessage("{}")
		}
		return message
	}
	for i := range calls {
		calls[i]["index"] = i
	}
	m["tool_calls"], _ = json.Marshal(calls) // it was JSON a line ago
	out, _ := json.Marshal(m)
	return out
}

// played is a stream that is there already.
type played struct{ events [][]byte }

// add writes an event with the members of head and those in pairs.
func (p *played) add(head map[string]any, pairs ...any) error {
	event := make(map[string]any, len(head)+len(pairs)/2)
	for k, v := range head {
		event[k] = v
	}
	for i := 0; i < len(pairs); i += 2 {
		event[pairs[i].(string)] = pairs[i+1]
	}
	data, err := json.Marshal(event)
	p.events = append(p.events, data)
	return err
}

// Next returns the next event.
func (p *played) Next() ([]byte, error) {
	if len(p.events) == 0 {
		return nil, io.EOF
	}
	next := p.events[0]
	p.events = p.events[1:]
	return next, nil
}

// Ready is true up to the end.
func (p *played) Ready() bool { return len(p.events) > 0 }

// Close has nothing to give back.
func (p *played) Close() error { return nil }

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
