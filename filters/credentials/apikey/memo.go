package apikey

import (
	"crypto/sha256"
	"strings"

	"sluice.dev/sluice/filters/credentials/keytable"
)

// Memo remembers the tags of keys that were found, since the same few keys make
// most requests: comparing a text costs a tenth of its checksum and hash. It says
// nothing about whether a key still works. The zero Memo is empty and ready.
//
// The slots are a slice: an array inside a struct is copied field by field when
// the struct is, and the optimiser of WASM then takes minutes and 10 GB for it.
type Memo struct {
	slots []remembered
}

// slots is how many keys are remembered.
const slots = 256

type remembered struct {
	text string
	tag  keytable.Tag
}

// Tag returns the tag of a key's text; ok is false when it has not the form of
// a key (see WellFormed).
func (m *Memo) Tag(text string) (tag keytable.Tag, ok bool) {
	if len(text) != KeyLen {
		return tag, false
	}
	if s := m.slot(text); same(s.text, text) {
		return s.tag, true
	}
	if !WellFormed(text) {
		return tag, false
	}
	return keytable.TagOfKey(sha256.Sum256([]byte(text))), true
}

// Imported returns the tag of a text that Importable has passed; known says that it was
// found before. Else the caller has it hashed, by TagOfImported, if it may be.
func (m *Memo) Imported(text string) (tag keytable.Tag, known bool) {
	s := m.slot(text)
	return s.tag, same(s.text, text)
}

// TagOfImported is the tag of a key's text that another system issued.
func TagOfImported(text string) keytable.Tag {
	return keytable.TagOfKey(ImportedHash(sha256.Sum256([]byte(text))))
}

// Keep remembers the tag of a key that was found; text may change afterwards.
func (m *Memo) Keep(text string, tag keytable.Tag) {
	if s := m.slot(text); s.tag != tag {
		*s = remembered{strings.Clone(text), tag}
	}
}

// slot is where a text is remembered: by its last three bytes, which it must have. They
// are of the checksum in a key of ours.
func (m *Memo) slot(text string) *remembered {
	if m.slots == nil {
		m.slots = make([]remembered, slots)
	}
	n := len(text)
	return &m.slots[text[n-1]*61+text[n-2]*7+text[n-3]]
}

// same compares in a time that does not depend on where two texts differ.
func same(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	differ := byte(0)
	for i := range len(a) {
		differ |= a[i] ^ b[i]
	}
	return differ == 0
}
