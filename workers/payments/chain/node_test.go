package chain

import (
	"encoding/json"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

// FuzzQuantity holds what a node calls a number to 256 bits.
func FuzzQuantity(f *testing.F) {
	for _, s := range []string{`"0x"`, `"0x0"`, `"0x` + strings.Repeat("f", 64) + `"`, `"0x` + strings.Repeat("f", 65) + `"`, `"0x` + strings.Repeat("9", 5000) + `"`, `"0x-1"`, `7`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		growth.Linear(t, len(text), 16, 4<<10, func() {
			var q quantity
			if json.Unmarshal([]byte(text), &q) == nil && (q.BitLen() > 256 || q.Sign() < 0) {
				t.Fatalf("%q is %v", text, &q.Int)
			}
		})
	})
}
