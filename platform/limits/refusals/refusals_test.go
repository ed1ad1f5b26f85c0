package refusals

import (
	"errors"
	"strconv"
	"testing"
	"time"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	var m Memory
	now := time.Unix(1_800_000_000, 0)
	full := errors.New("full")
	if err := m.Last("a", now); err != nil {
		t.Errorf("nobody was refused: %v", err)
	}
	m.Keep("a", full, now, now.Add(time.Second))
	if !errors.Is(m.Last("a", now.Add(time.Second-1)), full) || m.Last("b", now) != nil {
		t.Error("a alone is refused, for a second")
	}
	if m.Last("a", now.Add(time.Second)) != nil || len(m.kept) != 0 {
		t.Error("after a second it is forgotten")
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	var m Memory
	now := time.Unix(1_800_000_000, 0)
	bad := errors.New("bad")
	for i := range 3 {
		if err := m.Last("a", now); err != nil {
			t.Errorf("refused after %d of 3", i)
		}
		m.Count("a", bad, 3, now, now.Add(time.Duration(i+1)*time.Minute))
	}
	if !errors.Is(m.Last("a", now.Add(time.Minute-1)), bad) {
		t.Error("not refused after 3 of 3")
	}
	if m.Last("a", now.Add(time.Minute)) != nil {
		t.Error("refused for longer than from the first on")
	}
}

// However many are refused, MaxKept are remembered, and those whose time is over
// make room.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	var m Memory
	now := time.Unix(1_800_000_000, 0)
	full := errors.New("full")
	for i := range 2 * MaxKept {
		m.Keep(strconv.Itoa(i), full, now, now.Add(time.Second))
	}
	if len(m.kept) != MaxKept || m.Last("0", now) == nil {
		t.Errorf("%d are remembered", len(m.kept))
	}
	later := now.Add(time.Second)
	m.Keep("new", full, later, later.Add(time.Second))
	if len(m.kept) != 1 || m.Last("new", later) == nil {
		t.Errorf("%d are remembered a second later", len(m.kept))
	}
}
