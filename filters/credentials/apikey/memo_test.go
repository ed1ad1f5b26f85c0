package apikey

import (
	"testing"

	"sluice.dev/sluice/filters/credentials/keytable"
)

func TestAMemoSaysWhatAHashWould(t *testing.T) {
	t.Parallel()
	var m Memo
	for round := range 3 {
		for id := range uint64(2000) { // more than fit
			text := FormatKey(id, [SecretBytes]byte{byte(id), byte(id >> 8)})
			tag, ok := m.Tag(text)
			if !ok || tag != keytable.TagOfKey(Hash(text)) {
				t.Fatalf("round %d, key %d: %x %v", round, id, tag, ok)
			}
			m.Keep(text, tag)
		}
	}
	good := FormatKey(1, [SecretBytes]byte{1})
	m.Keep(good, keytable.TagOfKey(Hash(good)))
	for _, bad := range []string{"", good[:len(good)-1], good + "x", "x" + good[1:], good[:30] + "!" + good[31:]} {
		if _, ok := m.Tag(bad); ok {
			t.Errorf("%q has a tag", bad)
		}
	}
}

func BenchmarkTag(b *testing.B) {
	text := FormatKey(1, [SecretBytes]byte{1})
	b.Run("hashed", func(b *testing.B) {
		var m Memo
		for b.Loop() {
			m.Tag(text)
		}
	})
	b.Run("remembered", func(b *testing.B) {
		var m Memo
		m.Keep(text, keytable.TagOfKey(Hash(text)))
		for b.Loop() {
			m.Tag(text)
		}
	})
}
