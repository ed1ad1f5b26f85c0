package toolchain

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Inputs is the sum of all that a filter is made of. Two checkouts of one sum build
// the same bytes.
func Inputs(root, name string) (string, error) {
	recipe := strings.Join(slices.Concat([]string{TinyGoVersion(), goVersion}, buildFlags, wasmFeatures), " ")
	return inputSum(root, "filters/"+name, recipe)
}

// inputSum is a hash of all that a filter is made of: the recipe, the target
// file, what guards it, the sources of its package and of every package of this module that it
// imports, and the pinned versions of the modules they import. Tests do not
// count, nor do modules that only other programs use.
func inputSum(root, pkg, recipe string) (string, error) {
	files := []string{"dev/toolchain/guard.go", target}
	seen := map[string]bool{}
	if err := collect(root, pkg, seen, &files); err != nil {
		return "", err
	}
	sort.Strings(files)
	sum := sha256.New()
	sum.Write([]byte(recipe))
	for _, name := range []string{"go.mod", "go.sum"} {
		pins, err := pinned(filepath.Join(root, name), seen)
		if err != nil {
			return "", err
		}
		sum.Write([]byte(pins))
	}
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

// pinned returns the lines of a module file that say which Go and which
// versions of the imported modules are used.
func pinned(file string, imports map[string]bool) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		name, version, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "require "), " ")
		used := name == "go" || name == "replace" || strings.Contains(version, "=>")
		for path := range imports {
			used = used || path == name || strings.HasPrefix(path, name+"/")
		}
		if name != "" && used {
			out.WriteString(line)
		}
	}
	return out.String(), nil
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

// collectImports does so for what one file imports; a package of another
// module is noted in seen by its path.
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
		inner, ours := strings.CutPrefix(path, module+"/")
		if !ours {
			seen[path] = true
			continue
		}
		if err := collect(root, inner, seen, files); err != nil {
			return err
		}
	}
	return nil
}
