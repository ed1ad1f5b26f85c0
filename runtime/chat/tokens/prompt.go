package tokens

import (
	"bytes"

	"sluice.dev/sluice/filters/caps/jsonscan"
)

const (
	perMessage = 3    // tokens that frame a message
	perReply   = 3    // tokens that open the answer
	perImage   = 1024 // a picture or sound at least: bytes say little there
	perData    = 2 << 10
)

// Prompt estimates the tokens that a request's messages and tools make. body
// must be valid JSON. It looks at each byte twice, whatever their form, holds
// the texts once more, and tokenizes no more of them than Count does.
func Prompt(body []byte) int {
	n := perReply
	text := make([]byte, 0, len(body))
	visit(body, func(s []byte) { text = append(jsonscan.Append(text, s), ' ') }, func(k int) { n += k })
	return n + Count(string(text))
}

// Bound returns a number of tokens that a request's messages and tools do not
// exceed, at no more cost than one look at each byte: it takes every byte of
// text for a token, and one between texts.
func Bound(body []byte) int {
	n := perReply
	visit(body, func(s []byte) { n += len(s) + 1 }, func(k int) { n += k })
	return n
}

// visit calls text for the inside of each string that the model reads, and
// extra for what counts besides.
func visit(body []byte, text func([]byte), extra func(int)) {
	root := jsonscan.Root(body)
	if root.Kind(body) != jsonscan.Object {
		return
	}
	for w := jsonscan.Members(body, root); w.Step(); {
		messages := jsonscan.Equal(w.Name, "messages")
		if !messages && !jsonscan.Equal(w.Name, "tools") && !jsonscan.Equal(w.Name, "functions") {
			continue
		}
		if w.Kind(body) != jsonscan.Array {
			continue
		}
		for e := jsonscan.Members(body, w.Value); e.Step(); {
			if !messages {
				everyString(body[e.From:e.To], func(_, s []byte) { text(s) })
				continue
			}
			extra(perMessage)
			everyString(body[e.From:e.To], func(name, s []byte) {
				if media(name, s) {
					extra(max(perImage, len(s)/perData))
				} else {
					text(s)
				}
			})
		}
	}
}

// media reports whether the string that stands under name in a message is a
// picture, a sound or a file. A text that only looks like one is a text.
func media(name, s []byte) bool {
	if len(s) <= 256 {
		return false
	}
	switch {
	case jsonscan.Equal(name, "url"), jsonscan.Equal(name, "image_url"), jsonscan.Equal(name, "file_data"):
		return bytes.HasPrefix(s, []byte("data:"))
	}
	return jsonscan.Equal(name, "data")
}

// everyString finds every string in a JSON text, names included: a model reads
// those of a tool's parameters. name is the one that stood last before it.
func everyString(b []byte, f func(name, s []byte)) {
	var name []byte
	for i := 0; i < len(b); i++ {
		if b[i] != '"' {
			continue
		}
		from := i + 1
		for i = from; b[i] != '"'; i++ {
			if b[i] == '\\' {
				i++
			}
		}
		f(name, b[from:i])
		if next := jsonscan.Space(b, i+1); next < len(b) && b[next] == ':' {
			name, i = b[from:i], next
		}
	}
}
