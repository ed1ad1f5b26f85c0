package app

import (
	"strings"
	"testing"
	"time"
)

func TestPartsOfSegments(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"": 200 * time.Millisecond, "off": 0, "500ms": 500 * time.Millisecond, "200ms": 200 * time.Millisecond, "1s": time.Second, "50ms": -1, "2s": -1, "0": -1, "yes": -1} {
		got, err := Environment{Lookup: func(string) (string, bool) { return text, true }}.mediaParts()
		if want < 0 && (err == nil || !strings.Contains(err.Error(), "SLUICE_MEDIA_PARTS")) || want >= 0 && (err != nil || got != want) {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
}
