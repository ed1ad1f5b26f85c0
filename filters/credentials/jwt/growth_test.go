package jwt

import (
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

// What Parse says it allocates: multiple bytes for each of the text's, and a
// constant.
const (
	multiple = 16
	constant = 16 << 10
)

// shapes are claims of about n bytes in which a careless parser goes over the
// same bytes, or notes the same thing, again and again.
var shapes = map[string]func(n int) string{
	"blanks behind":     func(n int) string { return goodClaims + strings.Repeat(" ", n) },
	"blanks inside":     func(n int) string { return `{` + strings.Repeat(" ", n) + goodClaims[1:] },
	"depth":             func(n int) string { return withClaim(strings.Repeat("[", n/2) + strings.Repeat("]", n/2)) },
	"elements":          func(n int) string { return withClaim(`[` + strings.Repeat(`0,`, n/2) + `0]`) },
	"audiences":         func(n int) string { return `{"exp":1,"iss":"i","aud":[` + strings.Repeat(`"",`, n/3) + `""]}` },
	"names":             manyNames,
	"a name repeated":   func(n int) string { return withClaim(`1` + strings.Repeat(`,"y":1`, n/6)) },
	"empty members":     func(n int) string { return withClaim(`1` + strings.Repeat(`,"":""`, n/6)) },
	"a long name":       func(n int) string { return withClaim(`1,"` + strings.Repeat("n", n) + `":1`) },
	"escapes":           func(n int) string { return `{"exp":1,"iss":"` + strings.Repeat(`\n`, n/2) + `"}` },
	"lone surrogates":   func(n int) string { return `{"exp":1,"iss":"` + strings.Repeat(`\ud83d`, n/6) + `"}` },
	"a long number":     func(n int) string { return withClaim(strings.Repeat("9", n)) },
	"commas":            func(n int) string { return withClaim(`[0` + strings.Repeat(",", n) + `]`) },
	"no UTF-8":          func(n int) string { return withClaim(`"` + strings.Repeat("\xff", n) + `"`) },
	"a name in escapes": func(n int) string { return withClaim(`1,"` + strings.Repeat(`\u0061`, n/6) + `":1`) },
}

func withClaim(value string) string { return goodClaims[:len(goodClaims)-1] + `,"x":` + value + `}` }

// manyNames has as many members as there may be, with names as long as has room.
func manyNames(n int) string {
	var b strings.Builder
	for i := range maxMembers - 10 {
		fmt.Fprintf(&b, `,"%0*d":1`, max(3, n/maxMembers-6), i)
	}
	return withClaim(`1` + b.String())
}

func TestEveryShapeIsBounded(t *testing.T) {
	for name, shape := range shapes {
		for _, n := range []int{1 << 10, 4 << 10, 5 << 10, 1 << 20} {
			text := compact(goodHeader, shape(n))
			growth.Linear(t, min(len(text), MaxLen), multiple, constant, func() { Parse(text) })
			if t.Failed() {
				t.Fatalf("%s, %d", name, n)
			}
		}
	}
}

func TestWordsAreBounded(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		claim string
		want  int
	}{
		"as many as there may be":     {`"` + strings.Repeat("a ", maxList) + `"`, maxList},
		"one more":                    {`"` + strings.Repeat("a ", maxList+1) + `"`, 0},
		"as many in a list":           {`["a"` + strings.Repeat(`,"a"`, maxList-1) + `]`, maxList},
		"one more in a list":          {`["a"` + strings.Repeat(`,"a"`, maxList) + `]`, 0},
		"many spaces and a few words": {`"a` + strings.Repeat(" ", 2000) + `b"`, 2},
	} {
		tok, ok := Parse(compact(goodHeader, withClaim(c.claim)))
		if got := tok.Claims.Words("x"); !ok || len(got) != c.want {
			t.Errorf("%s: %v, %d words", what, ok, len(got))
		}
	}
}
