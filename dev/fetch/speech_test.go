package fetch

import (
	"strings"
	"testing"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200)
	got, err := tokens([]byte("\x02<s\x04▁t\x00" + string([]byte{200 - 128 + 128, 1}) + long))
	if err != nil || got != "PHM= 0\nIHQ= 1\n 2\n"+"eHh4"+strings.Repeat("eHh4", 65)+"eHg= 3\n" {
		t.Errorf("%q %v", got, err)
	}
	if _, err := tokens([]byte("\x05abc")); err == nil {
		t.Error("a tokenizer that is cut off is read")
	}
}
