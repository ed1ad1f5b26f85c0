package growth

import (
	"bytes"
	"fmt"
	"testing"
)

type failures []string

func (*failures) Helper() {}

func (f *failures) Errorf(format string, args ...any) {
	*f = append(*f, fmt.Sprintf(format, args...))
}

var sink []byte

func TestLinearHoldsToMultipleAndConstant(t *testing.T) {
	in := bytes.Repeat([]byte("x"), 64<<10)
	for name, c := range map[string]struct {
		multiple, constant int
		fails              bool
	}{
		"within the multiple": {2, 0, false},
		"within the constant": {0, 128 << 10, false},
		"beyond both":         {0, 16 << 10, true},
	} {
		var failed failures
		runs := 0
		Linear(&failed, len(in), c.multiple, c.constant, func() { runs++; sink = bytes.Clone(in) })
		if (len(failed) > 0) != c.fails {
			t.Errorf("%s: %v", name, failed)
		}
		if want := map[bool]int{false: 1, true: tries}[c.fails]; runs != want {
			t.Errorf("%s: ran %d times, want %d", name, runs, want)
		}
	}
}

// What grows with the square of its input is over any multiple.
func TestLinearFindsASquare(t *testing.T) {
	var failed failures
	Linear(&failed, 4096, 64, 4096, func() {
		for i := range 4096 {
			sink = make([]byte, i)
		}
	})
	if len(failed) != 1 {
		t.Fatal(failed)
	}
}
