package invoicing

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func at(s string) time.Time {
	t, err := time.Parse("2006-01-02 15:04", s)
	if err != nil {
		panic(err)
	}
	return t
}

func TestADayBelongsToThePlanThatItWasLongestOn(t *testing.T) {
	t.Parallel()
	start, end := at("2026-11-01 00:00"), at("2026-12-01 00:00")
	long := at("2026-01-01 00:00")
	for name, c := range map[string]struct {
		h    history
		want string
	}{
		"no change":             {history{created: long, plan: "pro"}, "pro 1-30"},
		"made in the month":     {history{created: at("2026-11-10 23:59"), plan: "pro"}, "pro 10-30"},
		"made after it":         {history{created: end, plan: "pro"}, ""},
		"changed in the middle": {history{created: long, left: []left{{"pro", at("2026-11-16 00:00")}}, plan: "free"}, "pro 1-15, free 16-30"},
		"changed at 11":         {history{created: long, left: []left{{"pro", at("2026-11-16 11:00")}}, plan: "free"}, "pro 1-15, free 16-30"},
		"changed at 13":         {history{created: long, left: []left{{"pro", at("2026-11-16 13:00")}}, plan: "free"}, "pro 1-16, free 17-30"},
		"changed after it":      {history{created: long, left: []left{{"pro", at("2026-12-01 00:10")}}, plan: "free"}, "pro 1-30"},
		"away over midnight": {history{created: long, left: []left{
			{"pro", at("2026-11-16 23:59")}, {"free", at("2026-11-17 00:01")}, {"pro", at("2026-11-17 23:59")}}, plan: "free"}, "pro 1-17, free 18-30"},
		"there and back": {history{created: long, left: []left{{"pro", at("2026-11-10 00:00")}, {"free", at("2026-11-20 00:00")}}, plan: "pro"}, "pro 1-9, free 10-19, pro 20-30"},
		"often in a day": {history{created: long, left: []left{
			{"a", at("2026-11-16 05:00")}, {"b", at("2026-11-16 12:00")}, {"a", at("2026-11-16 16:00")}}, plan: "c"}, "a 1-16, c 17-30"},
	} {
		var got []string
		for _, p := range c.h.parts(start, end) {
			got = append(got, fmt.Sprintf("%s %d-%d", p.plan, p.start.Day(), p.end.Day()))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}
