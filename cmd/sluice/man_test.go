package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/cmd/sluice/manual"
	"sluice.dev/sluice/internal/app"
)

var update = flag.Bool("update", false, "rewrite docs/cli.md")

// The page of the documentation is what the program says of itself.
func TestThePageOfCommandsIsCurrent(t *testing.T) {
	t.Parallel()
	const name = "../../docs/cli.md"
	want := manual.Markdown(commands(app.Environment{}))
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil { //nolint:gosec // a page that everybody may read
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("docs/cli.md is not what the commands say (%v): run `make generate`", err)
	}
}

func TestManualPages(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "man1")
	if out, err := runUse(t, app.Environment{}, "man", dir); err != nil {
		t.Fatal(err, out)
	}
	page, err := os.ReadFile(filepath.Join(dir, "sluice-key-create.1"))
	if err != nil || !strings.Contains(string(page), `.TH "SLUICE" "1"`) || !strings.Contains(string(page), "create an API key") || !strings.Contains(string(page), "never") {
		t.Errorf("%v\n%.400s", err, page)
	}
	pages, _ := filepath.Glob(filepath.Join(dir, "*.1"))
	if len(pages) < 100 {
		t.Errorf("only %d pages", len(pages))
	}
}
