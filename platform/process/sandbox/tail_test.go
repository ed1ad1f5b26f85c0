package sandbox

import (
	"io"
	"testing"
)

func TestATailKeepsTheLast(t *testing.T) {
	t.Parallel()
	tail := Tail{Most: 5}
	for _, c := range []struct{ write, want string }{{"ab", "ab"}, {"cde", "abcde"}, {"f", "bcdef"}, {"", "bcdef"}, {"0123456789", "56789"}} {
		if n, err := io.WriteString(&tail, c.write); err != nil || n != len(c.write) || tail.String() != c.want {
			t.Errorf("%q: %q, %d, %v", c.write, tail.String(), n, err)
		}
	}
}
