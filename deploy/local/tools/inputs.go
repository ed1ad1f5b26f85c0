package tools

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// inputSum is a hash of all that a filter is made of: the recipe, the module
// files, the target file, and the sources of its package and of every package
// of this module that it imports. Tests do not count.
func inputSum(root, pkg, recipe string) (string, error) {
	files := []string{"go.mod", "go.sum", "deploy/local/tools/tinygo-wasip1.json"}
	seen := map[string]bool{}
	if err := collect(root, pkg, seen, &files); err != nil {
		return "", err
	}
	sort.Strings(files)
	sum := sha256.New()
	sum.Write([]byte(recipe))
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return "", err
		}
		sum.Write(fmt.Appendf(nil, "\n%s %d\n", name, len(text)))
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// collect adds the files of pkg and of what it imports from this module.
func collect(root, pkg string, seen map[string]bool, files *[]string) error {
	if seen[pkg] {
		return nil
	}
	seen[pkg] = true
	entries, err := os.ReadDir(filepath.Join(root, pkg))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		name := filepath.Join(pkg, e.Name())
		*files = append(*files, name)
		if err := collectImports(root, name, seen, files); err != nil {
			return err
		}
	}
	return nil
}

func collectImports(root, name string, seen map[string]bool, files *[]string) error {
	if !strings.HasSuffix(name, ".go") {
		return nil
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.ImportsOnly)
	if err != nil {
		return err
	}
	for _, spec := range parsed.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		if inner, ours := strings.CutPrefix(path, module+"/"); ours {
			if err := collect(root, inner, seen, files); err != nil {
				return err
			}
		}
	}
	return nil
}
