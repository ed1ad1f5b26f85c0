// Package search finds texts by words: an index in memory, ranked by BM25, with
// snippets. What a query costs is bounded: see Index.Find.
package search

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strings"
)

// Entry is something that can be found: a section of a page, an operation, a code.
type Entry struct {
	Title string // of the section
	Page  string // in which it stands; may be empty
	Kind  string // such as "Guide" or "Error"
	Link  string
	Text  string // plain
}

// posting says how much an entry speaks of a term.
type posting struct {
	entry  int32
	weight float32
}

// Index holds entries. It does not change once it is made, and may be used from many
// goroutines.
type Index struct {
	entries  []Entry
	terms    []string // sorted
	postings [][]posting
	norms    []float32 // of entries: what their length does to weights
	bytes    int
}

// What a word counts by where it stands.
const (
	inTitle = 8
	inPage  = 2
)

// New makes the index of entries: time and memory linear in their texts.
func New(entries []Entry) *Index {
	x := &Index{entries: entries, norms: make([]float32, len(entries))}
	found, total := map[string][]posting{}, 0
	for i, e := range entries {
		counts := map[string]float32{}
		length := 0
		for _, part := range []struct {
			text   string
			weight float32
		}{{e.Title, inTitle}, {e.Page, inPage}, {e.Text, 1}} {
			for w := range words(part.text) {
				counts[w.term] += part.weight
				length++
			}
		}
		for term, weight := range counts {
			found[term] = append(found[term], posting{int32(i), weight}) //nolint:gosec // entries are thousands
		}
		x.norms[i] = float32(length)
		total += length
		x.bytes += len(e.Title) + len(e.Page) + len(e.Kind) + len(e.Link) + len(e.Text)
	}
	mean := float32(total)/float32(max(1, len(entries))) + 1
	for i, n := range x.norms {
		x.norms[i] = 1.2 * (0.4 + 0.6*n/mean)
	}
	x.terms = make([]string, 0, len(found))
	for term, list := range found {
		x.terms = append(x.terms, term)
		x.bytes += len(term) + 8*len(list)
	}
	slices.Sort(x.terms)
	x.postings = make([][]posting, len(x.terms))
	for i, term := range x.terms {
		x.postings[i] = found[term]
	}
	return x
}

// Size is how many entries and terms there are, and about how many bytes they take.
func (x *Index) Size() (entries, terms, bytes int) { return len(x.entries), len(x.terms), x.bytes }

// What a query may ask for.
const (
	MaxQuery   = 200 // bytes; what is beyond is not read
	maxWords   = 8
	maxEndings = 48 // terms that begin with a word of the query
)

// Match is an entry that was found, with a part of its text.
type Match struct {
	Entry
	Score   float64
	Snippet []Piece
}

// Find returns the entries that have most to do with a query, best first, at most most of
// them. A word finds the terms that begin with it. It reads MaxQuery bytes, maxWords words and
// maxEndings terms for each, and so costs at most a pass over all entries for each of those, and the
// snippets of what it returns.
func (x *Index) Find(query string, most int) []Match {
	asked := queried(query)
	if len(asked) == 0 || len(x.entries) == 0 {
		return nil
	}
	scores, hits := make([]float64, len(x.entries)), make([]uint8, len(x.entries))
	best := make([]float64, len(x.entries)) // of one word
	for _, w := range asked {
		clear(best)
		for _, t := range x.endings(w) {
			list := x.postings[t]
			rare := math.Log(1 + (float64(len(x.entries))-float64(len(list))+0.5)/(float64(len(list))+0.5))
			if x.terms[t] != w {
				rare *= 0.6 * float64(len(w)) / float64(len(x.terms[t]))
			}
			for _, p := range list {
				best[p.entry] = max(best[p.entry], rare*2.2*float64(p.weight)/float64(p.weight+x.norms[p.entry]))
			}
		}
		for i, s := range best {
			if s > 0 {
				scores[i] += s
				hits[i]++
			}
		}
	}
	var found []Match
	for i, s := range scores {
		if s > 0 {
			share := float64(hits[i]) / float64(len(asked))
			found = append(found, Match{Entry: x.entries[i], Score: s * share * share})
		}
	}
	slices.SortFunc(found, byScore)
	found = found[:min(len(found), 3*most+20)]
	for i := range found {
		found[i].Score *= named(found[i].Entry, asked)
	}
	found = Best(most, found)
	for i := range found {
		found[i].Snippet = snippet(found[i].Text, asked)
	}
	return found
}

func byScore(a, b Match) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Link, b.Link))
}

// named is what the name of an entry adds to its score: the more of the query is in it, and the
// more of it in the query. A page counts more than one of its sections.
func named(e Entry, asked []string) float64 {
	in, all := 0, 0
	var seen [maxWords]bool
	for w := range words(e.Title) {
		if w.part {
			continue
		}
		all++
		if i := slices.Index(asked, w.term); i >= 0 && !seen[i] {
			seen[i] = true
			in++
		}
	}
	more := 1.0
	if e.Page == "" {
		more = 1.3
	}
	return more * (1 + float64(in*in)/float64(len(asked)*max(1, all)))
}

// Best are the best of several lists of matches, best first.
func Best(most int, lists ...[]Match) []Match {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, byScore)
	return all[:min(len(all), most)]
}

// endings are the places of the terms that begin with w, itself first.
func (x *Index) endings(w string) (list []int) {
	from := sort.SearchStrings(x.terms, w)
	for i := from; i < len(x.terms) && len(list) < maxEndings && strings.HasPrefix(x.terms[i], w); i++ {
		if list = append(list, i); len(w) < 2 {
			break // a letter is a word and nothing's beginning
		}
	}
	return list
}

// queried are the words of a query, each once. A word of several parts, such as
// rate_limit, is asked for as a whole where it has a part that is asked for too.
func queried(query string) (list []string) {
	if len(query) > MaxQuery {
		query = query[:MaxQuery]
	}
	for w := range words(query) {
		if !w.part && len(list) < maxWords && !slices.Contains(list, w.term) {
			list = append(list, w.term)
		}
	}
	return list
}
