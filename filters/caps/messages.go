package caps

import (
	"strconv"

	"sluice.dev/sluice/filters/caps/jsonscan"
)

// roles are those of contract 8.1, and the two that public clients send besides:
// developer, the newer name of system, and function, the older one of tool.
var roles = [...]string{"system", "user", "assistant", "tool", "developer", "function"}

const (
	issueContent = "is not text"
	issueLong    = "has too many elements"
)

// message is the field of message i; empty when no detail has room any more.
func (r *request) message(i int) string {
	if len(r.bad) == maxDetails {
		return ""
	}
	return "messages[" + strconv.Itoa(i) + "]"
}

// readMessages checks every message, and goes on behind a bad one: the caller
// learns of all of them at once.
func (r *request) readMessages() {
	v, ok := r.value(messages)
	if !ok {
		r.refuse("messages", issueMissing, "an array of messages")
		return
	}
	if v.Kind(r.body) != jsonscan.Array {
		r.refuse("messages", "is not an array", "an array of messages")
		return
	}
	i := 0
	for w := jsonscan.Members(r.body, v); w.Step(); i++ {
		if i == maxMessages {
			r.refuse("messages", issueLong, "at most "+strconv.Itoa(maxMessages)+" messages")
			break
		}
		if w.Kind(r.body) != jsonscan.Object {
			r.refuse(r.message(i), "is not an object", "a message")
			continue
		}
		r.readMessage(i, w.Value)
	}
	if r.parts > maxParts {
		r.refuse("messages", "have too many content parts", "at most "+strconv.Itoa(maxParts)+" parts in all messages")
	}
	if i == 0 {
		r.refuse("messages", "is empty", "at least one message")
	}
}

// readMessage checks role and content. An assistant's message may lack content
// or have null there, as it does when it calls tools.
func (r *request) readMessage(i int, m jsonscan.Value) {
	// A name that occurs twice is read twice: each role must be right, and no
	// content escapes the rule on reminders.
	role, content, silent := false, false, false
	for w := jsonscan.Members(r.body, m); w.Step(); {
		switch {
		case jsonscan.Equal(w.Name, "role"):
			role = true
			silent = r.readRole(i, w.Value)
		case jsonscan.Fold(w.Name, "content"):
			content = content || w.Kind(r.body) != jsonscan.Null
			r.readContent(i, w.Value)
		}
	}
	if !role {
		r.refuse(r.message(i)+".role", issueMissing, "one of system, user, assistant, tool")
	}
	if !content && !silent {
		r.refuse(r.message(i)+".content", issueMissing, "a string")
	}
}

// readRole reports whether the role is one that may have no content.
func (r *request) readRole(i int, v jsonscan.Value) (silent bool) {
	// The name is compared decoded: an escape must not make another role of it.
	if v.Kind(r.body) == jsonscan.String {
		for _, name := range roles {
			if jsonscan.Equal(v.Text(r.body), name) {
				return name == "assistant"
			}
		}
	}
	r.refuse(r.message(i)+".role", "is not a role", "one of system, user, assistant, tool")
	return true
}

// readContent replaces reminders in a text, or in the texts of a list of parts.
func (r *request) readContent(i int, v jsonscan.Value) {
	switch v.Kind(r.body) {
	case jsonscan.Null:
	case jsonscan.String:
		r.remind(v)
	case jsonscan.Array:
		n := 0
		for w := jsonscan.Members(r.body, v); w.Step() && r.parts <= maxParts; n++ {
			r.parts++
			if w.Kind(r.body) != jsonscan.Object {
				r.refuse(r.message(i)+".content["+strconv.Itoa(n)+"]", "is not an object", "a content part")
				continue
			}
			r.readPart(w.Value)
		}
	default:
		r.refuse(r.message(i)+".content", issueContent, "a string")
	}
}

// readPart looks at the texts of a content part. What else a part may be is the
// provider's to judge.
func (r *request) readPart(part jsonscan.Value) {
	for w := jsonscan.Members(r.body, part); w.Step(); {
		text := jsonscan.Fold(w.Name, "text") || jsonscan.Fold(w.Name, "content")
		if text && w.Kind(r.body) == jsonscan.String {
			r.remind(w.Value)
		}
	}
}
