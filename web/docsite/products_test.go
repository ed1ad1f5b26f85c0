package docsite

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice"
	"sluice.dev/sluice/docs"
)

// What is marked is shown where a deployment has all products, and only there; the
// marks are shown nowhere.
func TestMarkedText(t *testing.T) {
	t.Parallel()
	const page = "# A\n\n| a | b |\n| --- | --- |\n| one | `x`<!-- platform -->, chat<!-- /platform --> |\n| chat | 2 | <!-- platform -->\n\n" +
		"<!-- platform -->\n```\nchat\n```\n<!-- /platform -->\nend\n"
	for want, all := range map[string]bool{
		"# A\n\n| a | b |\n| --- | --- |\n| one | `x`, chat |\n| chat | 2 |\n\n\n```\nchat\n```\n\nend\n": true,
		"# A\n\n| a | b |\n| --- | --- |\n| one | `x` |\n\n\n\nend\n":                                     false,
	} {
		if got, err := shown([]byte(page), all); err != nil || string(got) != want {
			t.Errorf("%v: %q, %v", all, got, err)
		}
	}
	if got, err := shown([]byte("# Chat <!-- platform -->\n\ntext\n"), false); err != nil || got != nil {
		t.Errorf("%q %v", got, err)
	}
	if got, err := shown([]byte("# Chat <!-- platform -->\n"), true); err != nil || string(got) != "# Chat\n" {
		t.Errorf("%q %v", got, err)
	}
}

func TestMarksThatAreWrong(t *testing.T) {
	t.Parallel()
	for _, page := range []string{
		"<!-- platform -->\na\n", "a\n<!-- /platform -->\n", "<!-- platform -->\n<!-- platform -->\n<!-- /platform -->\n",
		"<!-- platform -->\na <!-- platform -->\n<!-- /platform -->\n", "a <!-- /platform -->\n", "a <!-- platform --> b\n",
		"a <!-- platform --> b <!-- platform --> c <!-- /platform -->\n", "```\na <!-- platform -->\n```\n", "```\n<!-- platform -->\n<!-- /platform -->\n```\n",
		"`a <!-- platform --> b <!-- /platform -->`\n",
	} {
		for _, all := range []bool{true, false} {
			if got, err := shown([]byte("# A\n"+page), all); err == nil {
				t.Errorf("%q: %q", page, got)
			}
		}
	}
}

// sites are the pages of the project as both kinds of deployments show them.
func sites(t *testing.T) (platform, gateway *Site) {
	t.Helper()
	platform, err := New(docs.Files, true, Changes(sluice.Changelog, true)...)
	if err != nil {
		t.Fatal(err)
	}
	if gateway, err = New(docs.Files, false, Changes(sluice.Changelog, false)...); err != nil {
		t.Fatal(err)
	}
	return platform, gateway
}

// A gateway without media, chat, schedules and payments has no pages about them, and
// what led there is text.
func TestPagesOfAGateway(t *testing.T) {
	t.Parallel()
	platform, gateway := sites(t)
	want := []string{"broadcast", "captions", "chaos", "clients", "contract", "dash", "editor", "engines", "media", "moq", "phone", "runtime", "schedules", "tour", "vision", "voice", "x402"}
	if slices.Sort(gateway.without); !slices.Equal(gateway.without, want) || len(gateway.pages)+len(want) != len(platform.pages) || platform.without != nil {
		t.Errorf("left out: %q; and %q", gateway.without, platform.without)
	}
	to, ids := regexp.MustCompile(`href="/docs/([^/"#]+)(?:#([^"]*))?"`), regexp.MustCompile(`href="#([^"]*)"`)
	served := []string{"errors", "reference", "events"}
	for _, s := range []*Site{platform, gateway} {
		for name, p := range s.pages {
			links := to.FindAllStringSubmatch(string(p.Body), -1)
			for _, m := range ids.FindAllStringSubmatch(string(p.Body), -1) {
				links = append(links, []string{m[0], name, m[1]})
			}
			for _, m := range links {
				if page, ok := s.pages[m[1]]; !slices.Contains(served, m[1]) && (!ok || m[2] != "" && !strings.Contains(string(page.Body), `id="`+m[2]+`"`)) {
					t.Errorf("%s: %s leads nowhere", name, m[0])
				}
			}
		}
	}
}

// open are pages that may name the products: they explain the choice, or describe
// manifests that run them all.
var open = []string{"profiles", "compare", "kubernetes"}

// A gateway's pages are silent about what it does not have; the platform's are not.
func TestAGatewaysPagesAreSilentAboutTheRest(t *testing.T) {
	t.Parallel()
	platform, gateway := sites(t)
	for name, p := range gateway.pages {
		for line := range strings.Lines(other.Replace(string(p.Body) + string(p.markdown))) {
			if found := products.FindAllString(line, -1); found != nil && !slices.Contains(open, name) {
				t.Errorf("%s speaks of %q: %.200s", name, found, line)
			}
		}
		if strings.Contains(string(p.Body), "platform --") || strings.Contains(string(platform.pages[name].Body), "platform --") || strings.Contains(string(p.Body), "raw HTML") {
			t.Errorf("%s shows marks", name)
		}
	}
	speak := 0
	for name, p := range platform.pages {
		if gateway.pages[name].Name != "" && products.MatchString(other.Replace(string(p.Body))) {
			speak++
		}
	}
	if speak < 15 {
		t.Errorf("only %d of the platform's pages speak of its products", speak)
	}
	for _, e := range gateway.entries() {
		name, _, _ := strings.Cut(strings.TrimPrefix(e.Link, Root+"/"), "#")
		if found := products.FindAllString(other.Replace(e.Title+" "+e.Text), -1); found != nil && !slices.Contains(open, name) {
			t.Errorf("search of a gateway finds %q in %s", found, e.Link)
		}
	}
	names, err := fs.Glob(docs.Files, "*.md")
	if made := len(Changes(sluice.Changelog, true)); err != nil || len(names)+made != len(platform.pages) {
		t.Fatal(names, err)
	}
	bare := strings.NewReplacer(" "+opens+"\n", "\n", opens, "", closes, "")
	for _, file := range names {
		raw, err := fs.ReadFile(docs.Files, file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := shown(raw, true)
		if err != nil || string(got) != bare.Replace(string(raw)) {
			t.Errorf("%s: the platform shows something else: %v", file, err)
		}
	}
}

// The pictures are silent about it too.
func TestAGatewaysPictures(t *testing.T) {
	t.Parallel()
	marked := 0
	names, err := fs.Glob(docs.Files, "*.svg")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		all, err := pictures{docs.Files, true}.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		alone, err := pictures{docs.Files, false}.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(all)+string(alone), "<!--") {
			t.Errorf("%s shows marks", name)
		}
		if name == "request.svg" && (strings.Contains(string(alone), "402") || strings.Contains(string(alone), "price") || !strings.Contains(string(all), "402")) {
			t.Errorf("%s:\n%s", name, alone)
		}
		if len(alone) < len(all) {
			marked++
		}
	}
	if marked == 0 {
		t.Error("no picture has anything that a gateway alone does not have")
	}
}
