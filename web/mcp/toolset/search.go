package toolset

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// Bounds of a question.
const (
	maxWords = 16
	shortest = 4  // letters of a word that may be the beginning of another
	longest  = 64 // letters of a word
)

// Weights of where a word is found.
const (
	inName  = 8
	inTitle = 4
	inSet   = 3
	inRoute = 2
	inText  = 1
)

// sameAs are words that people say, and those that operations are named with.
var sameAs = map[string][]string{
	"add": {"create"}, "make": {"create"}, "new": {"create"}, "register": {"create"}, "remove": {"delete"}, "drop": {"delete"},
	"change": {"update"}, "edit": {"update"}, "rename": {"update"}, "modify": {"update"}, "show": {"get", "list"}, "read": {"get", "list"}, "all": {"list"},
}

// noise are words that tell no tool from another.
var noise = func() map[string]bool {
	by := map[string]bool{}
	for _, w := range words("an the this that these to of by in on at for from with and or not is are was be it its my me our we you your how what which who when where do did can could want need please has have i") {
		by[w] = true
	}
	return by
}()

// Index finds tools by words.
type Index struct {
	tools []Tool
	words []map[string]int // of each tool, with their weights
}

// NewIndex returns an index of tools. It takes time and memory linear in their texts.
func NewIndex(tools []Tool) *Index {
	x := &Index{tools: tools, words: make([]map[string]int, len(tools))}
	for i, t := range tools {
		by := map[string]int{}
		for _, a := range t.Arguments {
			for _, w := range words(a.Name) {
				by[w] = inText
			}
		}
		for _, part := range []struct {
			text   string
			weight int
		}{{t.Description, inText}, {t.Path, inRoute}, {t.Set(), inSet}, {t.Title, inTitle}, {t.Name, inName}} {
			for _, w := range words(part.text) {
				by[w] = max(by[w], part.weight)
			}
		}
		x.words[i] = by
	}
	return x
}

// Find returns the tools that have words of query, those with most of them first, as far
// as want takes them; without a query, all of those. A tool whose name is the query comes
// before all others. It takes time linear in the words of all tools, for each of the first
// 16 words of query.
func (x *Index) Find(query string, want func(Tool) bool) []Tool {
	type match struct {
		tool         Tool
		named        bool
		words, total int
	}
	var found []match
	asked := slices.DeleteFunc(words(query), func(w string) bool { return noise[w] })
	asked = asked[:min(len(asked), maxWords)]
	for i, t := range x.tools {
		if !want(t) {
			continue
		}
		m := match{tool: t, named: strings.EqualFold(t.Name, strings.TrimSpace(query))}
		for _, w := range asked {
			if weight := weigh(x.words[i], w); weight > 0 {
				m.words, m.total = m.words+1, m.total+weight
			}
		}
		if m.words > 0 || m.named || strings.TrimSpace(query) == "" {
			found = append(found, m)
		}
	}
	slices.SortStableFunc(found, func(a, b match) int {
		if a.named != b.named {
			return map[bool]int{true: -1, false: 1}[a.named]
		}
		return cmp.Or(cmp.Compare(b.words, a.words), cmp.Compare(b.total, a.total), cmp.Compare(a.tool.Name, b.tool.Name))
	})
	out := make([]Tool, len(found))
	for i := range found {
		out[i] = found[i].tool
	}
	return out
}

// weigh is how much a tool with these words is about w: w itself, the word that operations
// have for it, or one of the two in another form.
func weigh(by map[string]int, w string) int {
	best := by[w]
	for _, same := range sameAs[w] {
		best = max(best, by[same])
	}
	if best < inName && len(w) >= shortest {
		for other, weight := range by {
			if weight > best && len(other) >= shortest && (strings.HasPrefix(other, w) || strings.HasPrefix(w, other)) {
				best = weight
			}
		}
	}
	return best
}

// words are those of a text, in small letters; listWebhooks is two.
func words(text string) []string {
	var out []string
	var w []rune
	end := func() {
		if n := len(w); n > 3 && w[n-1] == 's' && w[n-2] != 's' {
			w = w[:n-1] // of several
		}
		if len(w) > 1 && len(w) <= longest {
			out = append(out, string(w))
		}
		w = w[:0]
	}
	before := ' '
	for _, r := range text {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
		case unicode.IsUpper(r) && unicode.IsLower(before):
			end()
			fallthrough
		default:
			w = append(w, unicode.ToLower(r))
		}
		before = r
	}
	end()
	return out
}
