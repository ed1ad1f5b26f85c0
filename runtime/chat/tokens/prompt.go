package tokens

import "sluice.dev/sluice/filters/caps/jsonscan"

const (
	perMessage = 3    // tokens that frame a message
	perReply   = 3    // tokens that open the answer
	perImage   = 1024 // a picture or sound in a data URL: bytes say nothing there
	dataURL    = "data:"
)

// Prompt estimates the tokens that a request's messages and tools make. body
// must be valid JSON.
func Prompt(body []byte) int {
	n := perReply
	visit(body, func(s []byte) { n += Count(string(jsonscan.Append(nil, s))) }, func(k int) { n += k })
	return n
}

// Bound returns a number of tokens that a request's messages and tools do not
// exceed, at no more cost than one look at each byte: it takes every byte of
// text for a token.
func Bound(body []byte) int {
	n := perReply
	visit(body, func(s []byte) { n += len(s) }, func(k int) { n += k })
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
			if messages {
				extra(perMessage)
			}
			everyString(body[e.From:e.To], text, extra)
		}
	}
}

// everyString finds every string in a JSON text, names included: a model reads
// those of a tool's parameters.
func everyString(b []byte, text func([]byte), extra func(int)) {
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
		if s := b[from:i]; len(s) > 256 && string(s[:len(dataURL)]) == dataURL {
			extra(perImage)
		} else {
			text(s)
		}
	}
}
