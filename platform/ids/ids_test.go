package ids

import (
	"strings"
	"testing"
	"time"
)

func TestIDsSortByTime(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_800_000_000_000)
	early, late := New("exec_", at), New("exec_", at.Add(time.Millisecond))
	if bound := First("exec_", at.Add(time.Millisecond)); early >= bound || late < bound || len(early) != len(bound) {
		t.Errorf("%s, %s, bound %s", early, late, bound)
	}
	if len(early) != len("exec_")+26 || !strings.HasPrefix(early, "exec_") {
		t.Error(early)
	}
	if New("exec_", at) == early {
		t.Error("two ids are the same")
	}
}
