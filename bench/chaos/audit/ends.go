package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Chat is one completion as a client saw it.
type Chat struct {
	Done  bool // it ended with [DONE]
	Whole bool // the text is the one expected
	Usage bool // it said how many tokens it took
}

// Config is a configuration that was accepted under a version.
type Config struct{ Version int64 }

// Final is a question asked of an edge when all is quiet again.
type Final struct{ Edge, What, Want, Got string }

func chats(seen Seen) Line {
	l := Line{Promise: "a completion that ends with [DONE] is whole"}
	broken := 0
	for _, c := range seen.Chats {
		if !c.Done {
			broken++
			continue
		}
		l.Checked++
		if !c.Whole || !c.Usage {
			l.breaks("a completion ended with [DONE] and its text is whole: %v, usage given: %v", c.Whole, c.Usage)
		}
	}
	l.Note = plural(broken, "completion", "completions") + " broke off, and showed it"
	return l
}

func configurations(seen Seen, stored Stored) Line {
	l := Line{Promise: "no accepted configuration is lost", Checked: len(seen.Configs)}
	for _, c := range seen.Configs {
		if !stored.Configs[c.Version] {
			l.breaks("version %d was accepted and is not in the history", c.Version)
		}
	}
	return l
}

func finals(seen Seen) Line {
	l := Line{Promise: "when all is quiet, every edge holds what is stored", Checked: len(seen.Finals)}
	for _, f := range seen.Finals {
		if f.Got != f.Want {
			l.breaks("%s: %s is %s, want %s", f.Edge, f.What, f.Got, f.Want)
		}
	}
	return l
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// counts writes a count for each name, in order of names.
func counts(of map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%d %s", of[name], name))
	}
	return strings.Join(parts, ", ")
}
