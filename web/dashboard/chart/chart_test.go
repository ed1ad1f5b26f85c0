package chart

import (
	"math"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func minutes(n int) (list []time.Time) {
	for i := range n {
		list = append(list, noon.Add(time.Duration(i)*time.Minute))
	}
	return list
}

func TestStacksStandOnEachOther(t *testing.T) {
	t.Parallel()
	c := Stack(minutes(2), []Series{{"answered", "ok", []int64{6, 0}}, {"failed", "bad", []int64{2, 10}}}, 0)
	if c.Top != 10 || c.Total != 18 || c.LimitY >= 0 || len(c.Rows) != 2 || !c.To.Equal(noon.Add(time.Minute)) {
		t.Fatalf("%+v", c)
	}
	want := []Bar{{5, 40, 40, 60, "ok"}, {5, 20, 40, 20, "bad"}, {55, 0, 40, 100, "bad"}}
	if len(c.Bars) != len(want) {
		t.Fatalf("%+v", c.Bars)
	}
	for i, b := range c.Bars {
		w := want[i]
		if b.Class != w.Class || math.Abs(b.X-w.X)+math.Abs(b.Y-w.Y)+math.Abs(b.Width-w.Width)+math.Abs(b.Height-w.Height) > 1e-9 {
			t.Errorf("bar %d: %+v, want %+v", i, b, w)
		}
	}
}

func TestNothingBreaksAChart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Chart{
		"no times":       Stack(nil, []Series{{"a", "ok", []int64{1}}}, 5),
		"no values":      Stack(minutes(3), []Series{{"a", "ok", nil}}, 0),
		"below nothing":  Stack(minutes(1), []Series{{"a", "ok", []int64{-4}}}, 0),
		"too few values": Stack(minutes(3), []Series{{"a", "ok", []int64{0}}}, 0),
	} {
		if len(c.Bars) != 0 || c.Total != 0 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestALimitIsDrawnWhereItCanBeSeen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value, limit, top int64
		y                 float64
	}{{50, 100, 100, 0}, {50, 1_000_000, 50, -1}, {150, 100, 200, 50}, {0, 4, 4, 0}} {
		got := Stack(minutes(1), []Series{{"a", "ok", []int64{c.value}}}, c.limit)
		if got.Top != c.top || got.LimitY != c.y {
			t.Errorf("%d of %d: top %d, line at %v", c.value, c.limit, got.Top, got.LimitY)
		}
	}
}

func TestTopsAreRound(t *testing.T) {
	t.Parallel()
	for v, want := range map[int64]int64{0: 4, 5: 5, 7: 8, 10: 10, 11: 20, 39: 40, 41: 50, 51: 60, 999: 1000, 1000: 1000, 1001: 2000} {
		if got := nice(v); got != want {
			t.Errorf("%d: %d, want %d", v, got, want)
		}
	}
}

func TestMarks(t *testing.T) {
	t.Parallel()
	got := Marks([]time.Time{noon.Add(-time.Second), noon, noon.Add(6 * time.Hour), noon.Add(24 * time.Hour)}, noon, noon.Add(24*time.Hour))
	if len(got) != 2 || got[0] != 0 || got[1] != 25 {
		t.Fatal(got)
	}
}

func TestShare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		part, whole int64
		want        float64
	}{{1, 4, 25}, {9, 4, 100}, {1, 0, 0}, {-1, 4, 0}} {
		if got := Share(c.part, c.whole); got != c.want {
			t.Errorf("%d of %d: %v", c.part, c.whole, got)
		}
	}
}
