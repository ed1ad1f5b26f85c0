package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	clause   = regexp.MustCompile(`(?m)^\| (\d+\.\d+) \|`)
	citation = regexp.MustCompile(`(?i)\bcontract (\d+\.\d+)`)
	outside  = regexp.MustCompile(`(?i)\bspec, |\bdesign, section\b`)
)

// comments returns the comments of a Go file, each group on one line.
func comments(t *testing.T, path string) (list []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range f.Comments {
		list = append(list, strings.Join(strings.Fields(group.Text()), " "))
	}
	return list
}

// Each clause has a number of its own, comments cite clauses that there are, and
// none cites a document that the project does not have.
func TestContract(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("contract.md")
	if err != nil {
		t.Fatal(err)
	}
	clauses := map[string]bool{}
	for _, m := range clause.FindAllStringSubmatch(string(b), -1) {
		if clauses[m[1]] {
			t.Errorf("contract.md has two clauses %s", m[1])
		}
		clauses[m[1]] = true
	}
	cited := 0
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		for _, text := range comments(t, path) {
			for _, m := range citation.FindAllStringSubmatch(text, -1) {
				cited++
				if !clauses[m[1]] {
					t.Errorf("%s cites contract %s: there is no such clause", path, m[1])
				}
			}
			if found := outside.FindString(text); found != "" {
				t.Errorf("%s cites %q: cite a clause of docs/contract.md", path, found)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(clauses) < 80 || cited < 50 {
		t.Errorf("only %d clauses and %d citations were found", len(clauses), cited)
	}
}
