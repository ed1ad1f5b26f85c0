package search

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"sluice.dev/sluice/platform/limits/growth"
)

var some = []Entry{
	{Title: "Create a webhook", Page: "Webhooks", Link: "/a", Text: "A webhook receives events. Its deliveries are signed."},
	{Title: "Rate limits", Page: "Keys", Link: "/b", Text: "A key may have a limit: requests over it get 429 rate_limit_exceeded and Retry-After."},
	{Title: "createStream", Page: "Reference", Link: "/c", Text: "Create a live stream"},
	{Title: "Settings", Page: "Settings", Link: "/d", Text: strings.Repeat("filler words that nobody looks for. ", 40) + "SLUICE_MCP_HOSTS: more host names" + strings.Repeat(" and more filler", 40)},
}

func links(list []Match) (all []string) {
	for _, m := range list {
		all = append(all, m.Link)
	}
	return all
}

func TestWhatIsFound(t *testing.T) {
	t.Parallel()
	x := New(some)
	for query, want := range map[string][]string{
		"webhook": {"/a"}, "Webhooks": {"/a"}, "webh": {"/a"}, "deliver": {"/a"}, "429": {"/b"}, "retry-after": {"/b"}, "rate limit": {"/b"}, "rate_limit_exceeded": {"/b"}, "exceeded": {"/b"},
		"create stream": {"/c", "/a"}, "createstream": {"/c"}, "SLUICE_MCP_HOSTS": {"/d"}, "mcp hosts": {"/d"}, "nothing": nil, "": nil, "!?": nil, "___": nil,
	} {
		if got := links(x.Find(query, 10)); !slices.Equal(got, want) {
			t.Errorf("%q: %q, not %q", query, got, want)
		}
	}
	if got := x.Find("create", 1); len(got) != 1 {
		t.Error(got)
	}
}

func TestSnippets(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, p := range New(some).Find("mcp_hosts more", 10)[0].Snippet {
		if p.Marked {
			fmt.Fprintf(&b, "[%s]", p.Text)
		} else {
			b.WriteString(p.Text)
		}
	}
	if got := b.String(); !strings.Contains(got, "[more] host names") || !strings.HasPrefix(got, "… ") || !strings.HasSuffix(got, " …") || len(got) > 300 {
		t.Error(got)
	}
}

// What many say is worth less than what few do, and a title more than a text.
func TestTheOrder(t *testing.T) {
	t.Parallel()
	list := []Entry{{Title: "Other", Link: "/text", Text: "of keys, keys and keys"}, {Title: "Keys", Link: "/title"}}
	for i := range 20 {
		list = append(list, Entry{Title: "common", Link: fmt.Sprint("/", i), Text: "common"})
	}
	list = append(list, Entry{Title: "both", Link: "/both", Text: "common keys"})
	if got := links(New(list).Find("common keys", 3)); got[0] != "/both" {
		t.Error(got)
	}
	if got := links(New(list).Find("keys", 2)); got[0] != "/title" {
		t.Error(got)
	}
}

// many is n entries of the same words, with terms that all begin alike.
func many(n int) (list []Entry) {
	for i := range n {
		list = append(list, Entry{Title: fmt.Sprintf("title aa%d", i), Link: fmt.Sprint("/", i), Text: fmt.Sprintf("a b c d e f g h aa%d %s", i, strings.Repeat("word ", 40))})
	}
	return list
}

// The bounds of Find: whatever is asked, it reads a part of a query, and allocates for a
// pass over the entries.
func TestCostOfAQuery(t *testing.T) {
	for _, n := range []int{500, 4000} {
		x := New(many(n))
		for _, query := range []string{"aa", "a b c d e f g h", strings.Repeat("word ", 1<<16), strings.Repeat("a", 1<<20)} {
			growth.Linear(t, n, 600, 64<<10, func() { x.Find(query, 20) })
		}
	}
}

// Whatever is asked, an answer is text, bounded, and its snippets are of the entry.
func FuzzFind(f *testing.F) {
	x := New(append(many(50), some...))
	for _, q := range []string{"rate limit", "…é_A", "aa1", "\xff_", "createStream a"} {
		f.Add(q, "A text of é and createStream")
	}
	f.Fuzz(func(t *testing.T, query, text string) {
		one := New([]Entry{{Title: query, Text: text}})
		growth.Linear(t, 1, 0, 128<<10, func() { x.Find(query, 20) })
		for _, m := range append(x.Find(query, 20), one.Find(query, 20)...) {
			var b strings.Builder
			for _, p := range m.Snippet {
				b.WriteString(p.Text)
			}
			got := strings.TrimSuffix(strings.TrimPrefix(b.String(), "… "), " …")
			if len(got) > shown+30 || utf8.ValidString(text) && utf8.ValidString(query) && !utf8.ValidString(got) {
				t.Errorf("%q", got)
			}
		}
	})
}

func BenchmarkFind(b *testing.B) {
	x := New(many(2000))
	for b.Loop() {
		x.Find("a b c d e f g word", 20)
	}
}
