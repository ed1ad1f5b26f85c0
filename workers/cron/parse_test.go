package cron

import (
	"errors"
	"strings"
	"testing"
)

// same holds pairs of spellings that must mean the same schedule.
var same = []struct{ a, b string }{
	{"@yearly", "0 0 1 1 *"},
	{"@annually", "0 0 1 JAN *"},
	{"@monthly", "0 0 1 * *"},
	{"@weekly", "0 0 * * SUN"},
	{"@daily", "@midnight"},
	{"@HOURLY", "0 * * * *"},
	{"0 0 * * 7", "0 0 * * 0"},
	{"0 0 * * 5-7", "0 0 * * FRI-SUN"},
	{"0 0 * * FRI-MON", "0 0 * * 5,6,0,1-1"},
	{"0 0 * * 7-2", "0 0 * * SUN-TUE"},
	{"0 0 * * 0-7", "0 0 * * 0-6"},
	{"0 0 * * MON-FRI/2", "0 0 * * mon,wed,fri"},
	{"0 0 * * 1/2", "0 0 * * 1,3,5"},
	{"0 0 * NOV-FEB *", "0 0 * 11,12,1,2 *"},
	{"0 0 28-3 * *", "0 0 28,29,30,31,1,2,3 * *"},
	{"0 22-2 * * *", "0 22,23,0-2 * * *"},
	{"0 22-2/2 * * *", "0 22,0,2/24 * * *"},
	{"50-10/10 * * * *", "50,0,10/60 * * * *"},
	{"5/20 * * * *", "5,25,45/60 * * * *"},
	{"*/25 * * * *", "0,25,50/60 * * * *"},
	{" 0\t0  1 1 * ", "@yearly"},
	{"05 007 * * *", "5 7 * * *"},
	{"0 0 ? * MON", "0 0 * * MON"},
	{"0 0 1 * ?", "0 0 1 * *"},
	{"0 0 l * fril", "0 0 L * 5L"},
	{"0 0 * * SUN#2,7#3", "0 0 * * 0#2,0#3"},
}

func TestSpellingsThatMeanTheSame(t *testing.T) {
	t.Parallel()
	for _, pair := range same {
		a, err := Parse(pair.a)
		if err != nil {
			t.Errorf("Parse(%q): %v", pair.a, err)
		}
		b, err := Parse(pair.b)
		if err != nil {
			t.Errorf("Parse(%q): %v", pair.b, err)
		}
		if a != b {
			t.Errorf("%q and %q differ:\n%+v\n%+v", pair.a, pair.b, a, b)
		}
	}
}

// refused maps an expression to the field its error must name; "" stands for
// the expression as a whole.
var refused = map[string]string{
	"":                       "",
	"   ":                    "",
	"* * * *":                "",
	"* * * * * *":            "",
	"TZ=UTC * * * *":         "",
	"CRON_TZ=UTC 0 0 * * *":  "",
	"@reboot":                "",
	"@every 5m":              "",
	"@":                      "",
	"０ 0 * * *":              "",
	"0 0 * * ſun":            "",
	"0 0 30 2 *":             "",
	"0 0 31 4,6,9,11 *":      "",
	"0 0 30W 2 *":            "",
	"0 0 31W APR *":          "",
	"0 0 L-30 2 *":           "",
	"60 * * * *":             "minute",
	"-1 * * * *":             "minute",
	"*/0 * * * *":            "minute",
	"*/61 * * * *":           "minute",
	"*/ * * * *":             "minute",
	"/5 * * * *":             "minute",
	"1/2/3 * * * *":          "minute",
	"1-2-3 * * * *":          "minute",
	"1- * * * *":             "minute",
	"1,,2 * * * *":           "minute",
	", * * * *":              "minute",
	"+1 * * * *":             "minute",
	"1.5 * * * *":            "minute",
	"? * * * *":              "minute",
	"99999999999999 * * * *": "minute",
	"JAN * * * *":            "minute",
	"0 24 * * *":             "hour",
	"0 L * * *":              "hour",
	"0 *5 * * *":             "hour",
	"0 0 0 * *":              "day of month",
	"0 0 32 * *":             "day of month",
	"0 0 W * *":              "day of month",
	"0 0 32W * *":            "day of month",
	"0 0 1-5W * *":           "day of month",
	"0 0 L-31 * *":           "day of month",
	"0 0 L-0 * *":            "day of month",
	"0 0 L/2 * *":            "day of month",
	"0 0 1L * *":             "day of month",
	"0 0 1#1 * *":            "day of month",
	"0 0 * 0 *":              "month",
	"0 0 * 13 *":             "month",
	"0 0 * JANUARY *":        "month",
	"0 0 * MON *":            "month",
	"0 0 * * 8":              "day of week",
	"0 0 * * L":              "day of week",
	"0 0 * * 8L":             "day of week",
	"0 0 * * MON#6":          "day of week",
	"0 0 * * MON#0":          "day of week",
	"0 0 * * #1":             "day of week",
	"0 0 * * MON-FRI#1":      "day of week",
	"0 0 * * MON#1#2":        "day of week",
	"0 0 * * 1W":             "day of week",
	"0 0 * * MONDAY":         "day of week",
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for expr, field := range refused {
		_, err := Parse(expr)
		var bad *Error
		if !errors.As(err, &bad) {
			t.Errorf("Parse(%q) = %v, want an *Error", expr, err)
			continue
		}
		if bad.Field != field || bad.Problem == "" {
			t.Errorf("Parse(%q) blames %q (%s), want %q", expr, bad.Field, bad.Problem, field)
		}
	}
}

func TestLengthIsBounded(t *testing.T) {
	t.Parallel()
	fits := strings.Repeat("1,", (MaxLength-9)/2) + "1 * * * *"
	if _, err := Parse(fits); err != nil {
		t.Errorf("%d bytes: %v", len(fits), err)
	}
	if _, err := Parse(fits + strings.Repeat(" ", MaxLength)); err == nil {
		t.Error("an expression over the limit was accepted")
	}
}

// TestErrorsAreShort holds that an error never carries a long input back in
// full.
func TestErrorsAreShort(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{strings.Repeat("x", 200) + " * * * *", "@" + strings.Repeat("x", 200)} {
		if _, err := Parse(expr); err == nil || len(err.Error()) > 150 {
			t.Errorf("error for a long input: %v", err)
		}
	}
}

// TestRareDatesAreAccepted holds that "impossible" means impossible in every
// year of the 400-year cycle.
func TestRareDatesAreAccepted(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{"0 0 29 2 *", "0 0 * 2 MON#5", "0 0 L-28 2 *", "0 0 29W 2 *", "0 0 30 2 MON", "0 0 */31 * MON#1"} {
		if _, err := Parse(expr); err != nil {
			t.Errorf("Parse(%q): %v", expr, err)
		}
	}
}
