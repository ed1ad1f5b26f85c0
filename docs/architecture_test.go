package docs

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "sluice.dev/sluice/"

// architecture is what ARCHITECTURE.md says.
type architecture struct {
	rooms    map[string][]string // the rooms that each may import
	packages []string            // in the order of their lines, which is from the bottom up within a room
}

var row = regexp.MustCompile("^\\| `([^`]+)` \\| ([^|]+) \\|(?:([^|]*)\\|)?$")

func readArchitecture(t *testing.T) (a architecture, text string) {
	t.Helper()
	raw, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	a.rooms = map[string][]string{}
	head, rest, _ := strings.Cut(string(raw), "\n## Packages\n")
	for line := range strings.Lines(head) {
		if m := row.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			a.rooms[m[1]] = strings.FieldsFunc(m[3], func(r rune) bool { return r == '`' || r == ',' || r == ' ' })
		}
	}
	for line := range strings.Lines(rest) {
		if m := row.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			a.packages = append(a.packages, m[1])
		}
	}
	return a, string(raw)
}

// room returns the longest of the rooms that hold a package; "": none.
func (a architecture) room(of string) (room string) {
	for r := range a.rooms {
		if (of == r || strings.HasPrefix(of, r+"/")) && len(r) > len(room) {
			room = r
		}
	}
	return room
}

type listed struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

// Every package has its line in ARCHITECTURE.md and stands in a room. It imports only
// what its room may, and within the room only packages whose lines stand above its
// own. End-to-end tests borrow nothing of the product even in tests.
func TestArchitecture(t *testing.T) {
	t.Parallel()
	a, _ := readArchitecture(t)
	packages := list(t)
	if len(packages) < 100 || len(a.rooms) < 10 {
		t.Fatalf("%d packages, %d rooms", len(packages), len(a.rooms))
	}
	for _, name := range a.packages {
		if !slices.ContainsFunc(packages, func(p listed) bool { return p.ImportPath == path.Join(module, name) }) {
			t.Errorf("%s has a line and is no package", name)
		}
	}
	for _, p := range packages {
		name := strings.TrimPrefix(p.ImportPath, module)
		if p.ImportPath+"/" == module {
			name = "."
		}
		room, line := a.room(name), slices.Index(a.packages, name)
		if room == "" || line < 0 {
			t.Errorf("%s stands in no room of ARCHITECTURE.md, or has no line there", name)
			continue
		}
		imports := p.Imports
		if room == "e2e" {
			imports = slices.Concat(imports, p.TestImports, p.XTestImports)
		}
		for _, i := range imports {
			to, ours := strings.CutPrefix(i, module)
			if !ours || to == name {
				continue
			}
			switch other := a.room(to); {
			case other != room && !slices.Contains(a.rooms[room], other) && !slices.Contains(a.rooms[room], "all"):
				t.Errorf("%s imports %s: %s may import only %v", name, to, room, a.rooms[room])
			case other == room && slices.Index(a.packages, to) > line:
				t.Errorf("%s imports %s, whose line stands below its own", name, to)
			}
		}
		if base := path.Base(name); slices.Contains([]string{"util", "common", "models", "runtime", "helpers"}, base) {
			t.Errorf("%s: the name says nothing", name)
		}
	}
}

// Files that ARCHITECTURE.md names are there.
func TestArchitectureNamesFiles(t *testing.T) {
	t.Parallel()
	_, text := readArchitecture(t)
	found := regexp.MustCompile("\\]\\(([^)#]+)\\)|`([a-z0-9_/]+\\.go)`").FindAllStringSubmatch(text, -1)
	if len(found) < 20 {
		t.Errorf("only %d files are named", len(found))
	}
	for _, m := range found {
		if name := m[1] + m[2]; !strings.HasPrefix(name, "http") {
			if _, err := os.Stat("../" + name); err != nil {
				t.Error(err)
			}
		}
	}
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
