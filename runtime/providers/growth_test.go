package providers

import (
	"strings"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

func TestDocumentsAreReadInProportion(t *testing.T) {
	for name, shape := range map[string]func(n int) string{
		"blanks":   func(n int) string { return "providers:\n" + strings.Repeat(" ", n) },
		"comments": func(n int) string { return strings.Repeat("# x\n", n/4) },
		"models": func(n int) string {
			return "providers: [{name: a, url: \"https://h\", models: [" + strings.Repeat("m,", n/2) + "m]}]"
		},
		"providers": func(n int) string { return "providers: [" + strings.Repeat("{name: a},", n/10) + "{name: b}]" },
		"one name":  func(n int) string { return "providers: [{name: " + strings.Repeat("a", n) + "}]" },
		"aliases":   func(n int) string { return "x: &a [1]\nproviders: [" + strings.Repeat("*a,", n/3) + "*a]" },
		"dashes":    func(n int) string { return "providers:\n  " + strings.Repeat("- ", n/2) },
		"brackets":  func(n int) string { return "providers: " + strings.Repeat("[", n) },
	} {
		for _, n := range []int{4 << 10, 16 << 10} {
			text := []byte(shape(n))
			growth.Linear(t, n, 2048, 512<<10, func() { _, _ = Parse(text, lookup) })
			if t.Failed() {
				t.Fatal(name, n)
			}
		}
	}
}
