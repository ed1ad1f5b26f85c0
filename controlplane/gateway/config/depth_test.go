package config

import (
	"strings"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

func TestTooDeep(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 101)
	for text, want := range map[string]bool{
		deep:                                       true,
		strings.Repeat("[", 100):                   false,
		strings.Repeat("[]", 1000):                 false,
		strings.Repeat("- ", 801):                  true,
		`a: "` + deep + `"`:                        false,
		`a: '` + deep + `'`:                        false,
		`- "` + deep + `"`:                         false,
		`{"a":"` + deep + `"}`:                     false,
		`{"a":["` + deep + `","\"` + deep + `"]}`:  false,
		`a: 'it''s ` + deep + `'`:                  false,
		"{\"a\":\n\"" + deep + `"}`:                false,
		"a: b\n\"" + deep + `": c`:                 false,
		"[a\n\"" + deep + `": c]`:                  true,
		`a: it's "` + deep + `"`:                   true, // it may be
		`[a "` + deep + `"]`:                       true,
		"[a\n- \"" + deep + `"]`:                   true,
		"# - \"\n" + deep + `"`:                    true,
		"a: |\n  - \"\n" + deep + ` "`:             true,
		"[\"a\n, \" , " + deep + ` ", x`:           true,
		`[!!str "a, " ` + deep + ` ", x`:           true,
		`a: "` + deep:                              true,
		`a: "b"` + deep:                            true,
		`[ "]", ` + strings.Repeat(`[ "]", `, 100): true,
	} {
		if got := TooDeep([]byte(text)); got != want {
			t.Errorf("%.60q: %v", text, got)
		}
	}
}

func FuzzTooDeep(f *testing.F) {
	f.Add([]byte(`a: {"b": ["[", 'c''d'], x: it's "y"} # "`))
	f.Fuzz(func(t *testing.T, b []byte) {
		growth.Linear(t, len(b), 1<<10, 4<<10, func() { TooDeep(b) })
	})
}
