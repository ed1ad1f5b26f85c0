package chat

import "sluice.dev/sluice/filters/caps/jsonscan"

// readChoice reads one choice. Where index or, in a choice's first delta, the
// role is missing, it is added: the helpers of public clients fail without.
func (c *chunk) readChoice(v jsonscan.Value, known *seen) {
	c.choices++
	if v.Kind(c.data) != jsonscan.Object {
		return
	}
	// A choice without an index is the first one, as there is no other then.
	index, indexed := 0, false
	var delta jsonscan.Value
	for w := jsonscan.Members(c.data, v); w.Step(); {
		kind := w.Kind(c.data)
		switch {
		case kind == jsonscan.Number && jsonscan.Equal(w.Name, "index"):
			index, indexed = jsonscan.Integer(c.data[w.From:w.To])
		case kind == jsonscan.String && jsonscan.Equal(w.Name, "finish_reason"):
			c.finishes = true
		case kind == jsonscan.Object && jsonscan.Equal(w.Name, "delta"):
			delta = w.Value
		}
	}
	first := known.add(index)
	if !indexed {
		c.insert(v, `"index":0`)
	}
	if delta.To > 0 {
		c.readDelta(delta, first)
	}
}

// readDelta collects what the model produced.
func (c *chunk) readDelta(v jsonscan.Value, first bool) {
	role := false
	for w := jsonscan.Members(c.data, v); w.Step(); {
		switch kind := w.Kind(c.data); {
		case jsonscan.Equal(w.Name, "role"):
			role = true
		case kind == jsonscan.String && jsonscan.Equal(w.Name, "content"):
			c.add(w.Value)
			c.content = w.Value
		// What a model thinks and refuses is produced and paid for as well.
		case kind == jsonscan.String && (jsonscan.Equal(w.Name, "reasoning_content") ||
			jsonscan.Equal(w.Name, "reasoning") || jsonscan.Equal(w.Name, "refusal")):
			c.add(w.Value)
		case kind == jsonscan.Array && jsonscan.Equal(w.Name, "tool_calls"):
			for call := jsonscan.Members(c.data, w.Value); call.Step(); {
				c.readCall(call.Value)
			}
		}
	}
	if first && !role {
		c.insert(v, `"role":"assistant"`)
	}
}

// readCall collects the name and the arguments of a tool call.
func (c *chunk) readCall(v jsonscan.Value) {
	if v.Kind(c.data) != jsonscan.Object {
		return
	}
	for w := jsonscan.Members(c.data, v); w.Step(); {
		if w.Kind(c.data) != jsonscan.Object || !jsonscan.Equal(w.Name, "function") {
			continue
		}
		for f := jsonscan.Members(c.data, w.Value); f.Step(); {
			if f.Kind(c.data) == jsonscan.String {
				c.add(f.Value)
			}
		}
	}
}

// add collects a text that the model produced. An empty one is none: providers
// send empty content beside tool calls.
func (c *chunk) add(v jsonscan.Value) {
	if text := v.Text(c.data); len(text) > 0 {
		c.text = jsonscan.Append(c.text, text)
		c.texts++
	}
}

// insert puts a member at the front of an object.
func (c *chunk) insert(v jsonscan.Value, member string) {
	if jsonscan.Space(c.data, v.From+1) != v.To-1 {
		member += ","
	}
	c.edits.Add(v.From+1, v.From+1, member)
}

// prefix returns, as JSON, a choice with the first n bytes of the chunk's text;
// ok is false if the text is anything but the content of one choice.
func (c *chunk) prefix(n int) (choice string, ok bool) {
	if c.texts != 1 || c.choices != 1 || c.content.To == 0 || n <= 0 {
		return "", false
	}
	raw := c.content.Text(c.data)
	at, size := 0, 0
	for at < len(raw) {
		// Characters stay whole: a pair of escapes is cut before or behind.
		_, next := jsonscan.Rune(raw, at)
		size += len(jsonscan.Append(nil, raw[at:next]))
		if size > n {
			break
		}
		at = next
	}
	return `{"index":0,"delta":{"content":"` + string(raw[:at]) + `"},"finish_reason":null}`, at > 0
}
