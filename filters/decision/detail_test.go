package decision

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNamesAreCutAtACharacter(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                  "",
		strings.Repeat("a", 100):            strings.Repeat("a", 100),
		strings.Repeat("a", 101):            strings.Repeat("a", 97) + "…",
		strings.Repeat("a", 96) + "ééé":     strings.Repeat("a", 96) + "…",
		strings.Repeat("é", 60):             strings.Repeat("é", 48) + "…",
		strings.Repeat("a", 94) + "𝄞𝄞":      strings.Repeat("a", 94) + "…",
		strings.Repeat("\x80", 200):         strings.Repeat("\x80", 93) + "…",
		strings.Repeat("a", 1<<20) + "tail": strings.Repeat("a", 97) + "…",
	} {
		if got := Cut(in, MaxName); got != want || len(got) > MaxName {
			t.Errorf("%.120q: %q, want %q", in, got, want)
		}
	}
	if !utf8.ValidString(Cut(strings.Repeat("𝄞", 100), MaxName)) {
		t.Error("a character was cut in two")
	}
}

func TestDetailsSayThatMoreWereLeftOut(t *testing.T) {
	t.Parallel()
	list := make([]Detail, 1000)
	for i := range list {
		list[i] = Detail{Field: strings.Repeat("n", i+1), Issue: "is wrong"}
	}
	for n, want := range map[int]int{0: 0, 1: 1, 20: 20, 21: 20, 1000: 20} {
		got := Bounded(list[:n])
		if len(got) != want || want > 0 && (got[want-1] == More) != (n > MaxDetails) {
			t.Errorf("%d: %d, the last %+v", n, len(got), got[len(got)-1])
		}
	}
	if again := Bounded(Bounded(list)); len(again) != MaxDetails || again[MaxDetails-1] != More {
		t.Error("bounded twice:", again)
	}
}
