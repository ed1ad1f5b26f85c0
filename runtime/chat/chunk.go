package chat

import (
	"strconv"

	"sluice.dev/sluice/filters/caps/jsonscan"
)

const chunkObject = "chat.completion.chunk"

// Bounds of what a provider sends in one event.
const (
	maxDepth   = 64  // of nesting
	maxChoices = 128 // a request has no more
)

// seen is a set of choice indexes; a request has at most 128 choices.
type seen [2]uint64

// add takes an index in and reports whether it is new. Indexes that no request
// can have count as the nearest one.
func (s *seen) add(i int) (first bool) {
	i = max(0, min(i, 127))
	bit := uint64(1) << (i % 64)
	first = s[i/64]&bit == 0
	s[i/64] |= bit
	return first
}

// chunk is what one event of a provider says, and what to change in it so that
// every client understands it.
type chunk struct {
	data   []byte
	edits  jsonscan.Edits
	fields [chunkFields]jsonscan.Member
	has    [chunkFields]bool

	choices  int            // in this chunk; 0 for one that only bears usage
	finishes bool           // a choice has a finish_reason
	text     []byte         // decoded: all that the model produced here
	content  jsonscan.Value // the content that text is, if it is nothing else
	texts    int            // how many strings text is made of
	extra    int            // tokens of sound and pictures
}

// The members of a chunk that matter here.
const (
	fieldID = iota
	fieldObject
	fieldCreated
	fieldModel
	fieldChoices
	fieldUsage
	fieldMarker
	fieldError
	chunkFields
)

var chunkNames = [chunkFields]string{"id", "object", "created", "model", "choices", "usage", usageMarker, "error"}

// parse reads one event's data; ok is false if it is not a JSON object, or has
// more choices than a request can ask for. It
// costs time in proportion to data, whatever its form, and memory for the edits
// and the texts that it finds: at most some five times data.
func parse(data []byte, known *seen) (c chunk, ok bool) {
	if jsonscan.Validate(data, maxDepth) != nil {
		return c, false
	}
	root := jsonscan.Root(data)
	if root.Kind(data) != jsonscan.Object {
		return c, false
	}
	c.data = data
	// Of a name that occurs twice the last one counts, as clients read it.
	for w := jsonscan.Members(data, root); w.Step(); {
		for i, name := range chunkNames {
			if jsonscan.Equal(w.Name, name) {
				kind := w.Kind(data)
				c.fields[i], c.has[i] = w.Member, kind != jsonscan.Null && (i != fieldChoices || kind == jsonscan.Array)
			}
		}
	}
	if c.has[fieldChoices] {
		for w := jsonscan.Members(data, c.fields[fieldChoices].Value); w.Step(); {
			if c.choices == maxChoices {
				return c, false
			}
			c.readChoice(w.Value, known)
		}
	}
	return c, true
}

// usage takes the usage out of a chunk that bears choices too: the client gets
// it once, at the end. A marker of a runtime behind us is renamed, for the
// finish chunk gets ours.
func (c *chunk) usage() (u Usage, ok bool) {
	for _, f := range [...]int{fieldMarker, fieldUsage} {
		if !c.has[f] {
			continue
		}
		if found, good := parseUsage(c.data, c.fields[f].Value); good {
			u, ok = found, true
		}
	}
	if c.has[fieldUsage] {
		c.edits.Add(c.fields[fieldUsage].From, c.fields[fieldUsage].To, "null")
	}
	if m := c.fields[fieldMarker]; c.has[fieldMarker] {
		c.edits.Add(m.Start, m.Start+len(m.Name)+2, `"x-service-upstream-usage"`)
	}
	return u, ok
}

// normalize adds what contract 8.6 promises of each chunk and some providers leave
// out or write as another type: the object's name, the id, the model.
func (c *chunk) normalize(h head) {
	at := jsonscan.Root(c.data).From + 1
	for _, f := range [...]struct {
		field int
		value string
	}{{fieldID, h.id}, {fieldObject, `"` + chunkObject + `"`}, {fieldModel, h.model}} {
		m := c.fields[f.field]
		switch {
		case m.To == 0:
			c.edits.Add(at, at, `"`+chunkNames[f.field]+`":`+f.value+`,`)
		case m.Kind(c.data) != jsonscan.String, f.field == fieldObject && string(c.data[m.From:m.To]) != f.value:
			c.edits.Add(m.From, m.To, f.value)
		}
	}
}

// head is what all chunks of one stream have alike, as JSON.
type head struct{ id, created, model string }

// head takes over what the chunk says, where it has the right type.
func (c *chunk) head(h head) head {
	for _, f := range [...]struct {
		field int
		kind  jsonscan.Kind
		value *string
	}{{fieldID, jsonscan.String, &h.id}, {fieldCreated, jsonscan.Number, &h.created}, {fieldModel, jsonscan.String, &h.model}} {
		if m := c.fields[f.field]; c.has[f.field] && m.Kind(c.data) == f.kind {
			*f.value = string(c.data[m.From:m.To])
		}
	}
	return h
}

// json returns a chunk of our own.
func (h head) json(choices string, rest string) []byte {
	return []byte(`{"id":` + h.id + `,"object":"` + chunkObject + `","created":` + h.created + `,"model":` + h.model +
		`,"choices":[` + choices + `]` + rest + `}`)
}

// finished lists, for a chunk of our own, all known choices with reason.
func finished(known seen, reason string) (choices string) {
	known.add(0)
	for i := range 128 {
		if known[i/64]>>(i%64)&1 == 0 {
			continue
		}
		if choices != "" {
			choices += ","
		}
		choices += `{"index":` + strconv.Itoa(i) + `,"delta":{},"finish_reason":"` + reason + `"}`
	}
	return choices
}
