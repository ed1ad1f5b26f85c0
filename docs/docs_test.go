package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```")
	code    = regexp.MustCompile("`[^`\n]+`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	mark    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	drop    = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// slugs are the fragments that headings of a page have, as hosts of Markdown make
// them.
func slugs(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		name := mark.ReplaceAllString(m[1], "$1")
		all[strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(name), ""), " ", "-")] = true
	}
	return all
}

// Every link of a page to a file of the project leads to one, and to a heading in
// it if it names one.
func TestLinks(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	above, err := filepath.Glob("../*.md")
	if err != nil || len(pages) < 10 || len(above) < 3 {
		t.Fatal(pages, above, err)
	}
	links := 0
	for _, page := range append(pages, above...) {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text := code.ReplaceAllString(fence.ReplaceAllString(string(b), ""), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			links++
			file, fragment, _ := strings.Cut(m[1], "#")
			target := filepath.Join(filepath.Dir(page), file)
			if file == "" {
				target = page
			}
			info, err := os.Stat(target)
			if err != nil {
				t.Errorf("%s: %s leads nowhere", page, m[1])
				continue
			}
			if fragment == "" || info.IsDir() {
				continue
			}
			b, err := os.ReadFile(target)
			if err != nil {
				t.Fatal(err)
			}
			if !slugs(string(b))[fragment] {
				t.Errorf("%s: %s has no heading #%s", page, target, fragment)
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links were found", links)
	}
}

var (
	box      = regexp.MustCompile("(?m)^```(console.*)$")
	boxRun   = regexp.MustCompile(`^console run by (Test\w+(?:, Test\w+)*)$`)
	boxShown = regexp.MustCompile(`^console not run: \S.*$`)
	testName = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) \{$`)
	named    = regexp.MustCompile(`Test[A-Z]\w+`)
)

// tests are the names of all tests of the project.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != "..":
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		b, err := os.ReadFile(path)
		for _, m := range testName.FindAllSubmatch(b, -1) {
			all[string(m[1])] = true
		}
		return err
	})
	if err != nil || len(all) < 500 {
		t.Fatal(len(all), err)
	}
	return all
}

// Boxes marked sh are run as they stand. Any other box with commands says which tests run
// what it shows, or why none can.
func TestEveryBoxIsRunOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	known, boxes := tests(t), 0
	for _, page := range pages {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range box.FindAllStringSubmatch(string(b), -1) {
			boxes++
			if !boxRun.MatchString(m[1]) && !boxShown.MatchString(m[1]) {
				t.Errorf("%s: a box is marked %q: let it be sh, or `console run by TestNAME`, or `console not run: WHY`", page, m[1])
			}
			for _, name := range named.FindAllString(m[1], -1) {
				if !known[name] {
					t.Errorf("%s: there is no %s", page, name)
				}
			}
		}
	}
	if boxes < 30 {
		t.Errorf("only %d boxes", boxes)
	}
}

// Pictures say what is on them, and carry nothing that runs.
func TestPictures(t *testing.T) {
	t.Parallel()
	pictures, err := Files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pictures {
		b, err := Files.ReadFile(p.Name())
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(p.Name()) != ".svg" {
			continue
		}
		for _, want := range []string{"<title>", `role="img"`, "viewBox"} {
			if !strings.Contains(string(b), want) {
				t.Errorf("%s has no %s", p.Name(), want)
			}
		}
		if strings.Contains(string(b), "<script") || strings.Contains(string(b), "style=") || strings.Contains(string(b), "<style") {
			t.Errorf("%s has script or style in it", p.Name())
		}
	}
}
