package webhooks

import (
	"strings"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

func FuzzCursor(f *testing.F) {
	for _, s := range []string{"", "7.0", "18446744073709551615.9223372036854775807", "1.-1", "01.1", "1", strings.Repeat("1", 50)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		p, err := parsePlace(cursor)
		if err == nil && cursor != "" && p.String() != cursor {
			t.Errorf("%q is %q", cursor, p)
		}
		growth.Linear(t, len(cursor), 0, 1<<10, func() { _, _ = parsePlace(cursor) })
	})
}
