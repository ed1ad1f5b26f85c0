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
			c.readDelta(w.Value)
		// What some providers send in its place is produced and paid for as well.
		case jsonscan.Equal(w.Name, "delta"), jsonscan.Equal(w.Name, "message"), jsonscan.Equal(w.Name, "text"):
			c.strings(w.Value)
		}
	}
	first := known.add(index)
	if !indexed {
		c.insert(v, `"index":0`)
	}
	if first && delta.To > 0 && !c.names(delta, "role") {
		c.insert(delta, `"role":"assistant"`)
	}
}

// names reports whether an object has a member of a name.
func (c *chunk) names(v jsonscan.Value, name string) bool {
	for w := jsonscan.Members(c.data, v); w.Step(); {
		if jsonscan.Equal(w.Name, name) {
			return true
		}
	}
	return false
}

// readDelta collects what the model produced: every string, whatever it is
// called, since what a model says, thinks, refuses and calls is paid for alike.
func (c *chunk) readDelta(v jsonscan.Value) {
	for w := jsonscan.Members(c.data, v); w.Step(); {
		switch {
		case jsonscan.Equal(w.Name, "role"):
		case w.Kind(c.data) == jsonscan.String && jsonscan.Equal(w.Name, "content"):
			c.add(w.Value)
			c.content = w.Value
		case jsonscan.Equal(w.Name, "tool_calls"), jsonscan.Equal(w.Name, "content"):
			c.list(w.Value)
		case jsonscan.Equal(w.Name, "audio"), jsonscan.Equal(w.Name, "images"):
			c.media(w.Value)
		default:
			c.strings(w.Value)
		}
	}
}

// list collects the strings of a list of calls or parts, but for the ids and
// types of its elements, which no model writes.
func (c *chunk) list(v jsonscan.Value) {
	if v.Kind(c.data) != jsonscan.Array {
		c.strings(v)
		return
	}
	for e := jsonscan.Members(c.data, v); e.Step(); {
		if e.Kind(c.data) != jsonscan.Object {
			c.strings(e.Value)
			continue
		}
		for w := jsonscan.Members(c.data, e.Value); w.Step(); {
			if !jsonscan.Equal(w.Name, "id") && !jsonscan.Equal(w.Name, "type") {
				c.strings(w.Value)
			}
		}
	}
}

// perData is how many bytes of sound or picture count as a token: what public
// providers charge is between one and three kilobytes of base64.
const perData = 2 << 10

// media collects sound and pictures: what is said in words as text, the data by
// its length.
func (c *chunk) media(v jsonscan.Value) {
	c.walk(v, func(name, text []byte) {
		switch {
		case jsonscan.Equal(name, "id"), jsonscan.Equal(name, "type"):
		case jsonscan.Equal(name, "data"), jsonscan.Equal(name, "url"), jsonscan.Equal(name, "b64_json"):
			c.extra += (len(text) + perData - 1) / perData
		default:
			c.take(text)
		}
	})
}

// strings collects every string in v, whatever its depth; names are not values.
func (c *chunk) strings(v jsonscan.Value) {
	c.walk(v, func(_, text []byte) { c.take(text) })
}

// walk calls f for each string below v, escapes untouched, with the last name
// before it. It looks at each byte once, whatever the depth.
func (c *chunk) walk(v jsonscan.Value, f func(name, text []byte)) {
	var name []byte
	for i := v.From; i < v.To; i++ {
		if c.data[i] != '"' {
			continue
		}
		from := i + 1
		for i = from; c.data[i] != '"'; i++ {
			if c.data[i] == '\\' {
				i++
			}
		}
		text := c.data[from:i]
		if next := jsonscan.Space(c.data, i+1); next < len(c.data) && c.data[next] == ':' {
			name = text
			i = next
			continue
		}
		f(name, text)
	}
}

// add collects the text of a string.
func (c *chunk) add(v jsonscan.Value) { c.take(v.Text(c.data)) }

// take collects a text that the model produced. An empty one is none: providers
// send empty content beside tool calls.
func (c *chunk) take(text []byte) {
	if len(text) > 0 {
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
