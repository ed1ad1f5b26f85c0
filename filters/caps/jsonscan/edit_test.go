package jsonscan

import "testing"

func TestEdits(t *testing.T) {
	t.Parallel()
	var e Edits
	e.Add(8, 9, "H")   // replace
	e.Add(0, 2, "")    // remove
	e.Add(4, 4, "<")   // insert
	e.Add(4, 4, ">")   // insert behind it
	e.Add(5, 8, "-")   // replace up to the first
	e.Add(6, 7, "!!!") // inside the one before: gone
	if got := string(e.Apply([]byte("> "), []byte("abcdefghijk"))); got != "> cd<>e-Hjk" {
		t.Errorf("got %q", got)
	}
	if got := string(Edits(nil).Apply(nil, []byte("abc"))); got != "abc" {
		t.Errorf("without edits: %q", got)
	}
}
