package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "sluice.dev/sluice/"

// arrows says, for each top-level folder, which others it may import.
var arrows = map[string][]string{
	"filters":      {"filters"},
	"migrations":   {"migrations"},
	"platform":     {"platform", "filters", "migrations"},
	"envoy":        {"envoy", "platform", "filters"},                                // the standby listener answers with the envelope
	"controlplane": {"controlplane", "platform", "filters", "migrations", "deploy"}, // the default document is deploy's
	"workers":      {"workers", "controlplane", "platform", "filters"},
	"runtime":      {"runtime", "controlplane", "platform", "filters"},
	"deploy":       {"deploy", "envoy"},
	"e2e":          {"e2e"},
	"docs":         {"docs"},
}

type listed struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

// The arrows between folders (contract 11.13) hold for the code that ships;
// end-to-end tests may not even borrow the product's code in tests.
func TestArrows(t *testing.T) {
	t.Parallel()
	packages := list(t)
	if len(packages) < 20 {
		t.Fatalf("only %d packages were listed", len(packages))
	}
	for _, p := range packages {
		from := folder(p.ImportPath)
		allowed, ruled := arrows[from]
		if !ruled {
			continue
		}
		imports := p.Imports
		if from == "e2e" {
			imports = append(append(imports, p.TestImports...), p.XTestImports...)
		}
		for _, i := range imports {
			if to := folder(i); to != "" && !contains(allowed, to) {
				t.Errorf("%s imports %s: %s may import only %v", p.ImportPath, i, from, allowed)
			}
		}
		if name := p.ImportPath[strings.LastIndex(p.ImportPath, "/")+1:]; contains([]string{"util", "common", "models", "runtime", "helpers"}, name) {
			t.Errorf("%s: the name says nothing", p.ImportPath)
		}
	}
}

// folder is the top-level folder of a package of ours, "" for any other.
func folder(path string) string {
	rest, ours := strings.CutPrefix(path, module)
	if !ours {
		return ""
	}
	first, _, _ := strings.Cut(rest, "/")
	return first
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func list(t *testing.T) (all []listed) {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", module+"...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
