package caps

import (
	"strconv"

	"sluice.dev/sluice/filters/caps/jsonscan"
)

// roles are the spec's, and the two that public clients send besides:
// developer, the newer name of system, and function, the older one of tool.
var roles = [...]string{"system", "user", "assistant", "tool", "developer", "function"}

const issueContent = "is not text"

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
		field := "messages[" + strconv.Itoa(i) + "]"
		if w.Kind(r.body) != jsonscan.Object {
			r.refuse(field, "is not an object", "a message")
			continue
		}
		r.readMessage(field, w.Value)
	}
	if i == 0 {
		r.refuse("messages", "is empty", "at least one message")
	}
}

// readMessage checks role and content. An assistant's message may lack content
// or have null there, as it does when it calls tools.
func (r *request) readMessage(field string, message jsonscan.Value) {
	// A name that occurs twice is read twice: each role must be right, and no
	// content escapes the rule on reminders.
	role, content, silent := false, false, false
	for w := jsonscan.Members(r.body, message); w.Step(); {
		switch {
		case jsonscan.Equal(w.Name, "role"):
			role = true
			silent = r.readRole(field, w.Value)
		case jsonscan.Fold(w.Name, "content"):
			content = content || w.Kind(r.body) != jsonscan.Null
			r.readContent(field, w.Value)
		}
	}
	if !role {
		r.refuse(field+".role", issueMissing, "one of system, user, assistant, tool")
	}
	if !content && !silent {
		r.refuse(field+".content", issueMissing, "a string")
	}
}

// readRole reports whether the role is one that may have no content.
func (r *request) readRole(field string, v jsonscan.Value) (silent bool) {
	// The name is compared decoded: an escape must not make another role of it.
	if v.Kind(r.body) == jsonscan.String {
		for _, name := range roles {
			if jsonscan.Equal(v.Text(r.body), name) {
				return name == "assistant"
			}
		}
	}
	r.refuse(field+".role", "is not a role", "one of system, user, assistant, tool")
	return true
}

// readContent replaces reminders in a text, or in the texts of a list of parts.
func (r *request) readContent(field string, v jsonscan.Value) {
	switch v.Kind(r.body) {
	case jsonscan.Null:
	case jsonscan.String:
		r.remind(v)
	case jsonscan.Array:
		i := 0
		for w := jsonscan.Members(r.body, v); w.Step(); i++ {
			if w.Kind(r.body) != jsonscan.Object {
				r.refuse(field+".content["+strconv.Itoa(i)+"]", "is not an object", "a content part")
				continue
			}
			r.readPart(w.Value)
		}
	default:
		r.refuse(field+".content", issueContent, "a string")
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
