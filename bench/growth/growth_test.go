// Package growth holds every parser of outside input to what it may cost: time
// linear in the input, memory of a stated multiple of it, small answers.
package growth

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// cost is a line of the program's, as it prints it.
type cost struct {
	Parser, Form       string
	Multiple, Constant int
	Input              int
	Steps              uint64
	Allocations, Bytes uint64
	Answer, Details    int
	Panic              string
}

// counted are the packages whose steps are counted: ours, and those of the
// standard library that do the work.
const counted = "sluice.dev/sluice/...,encoding/json,encoding/base64,net/url,strings,bytes,bufio,strconv,regexp,regexp/syntax,mime,unicode/utf8,slices"

// measured builds the program and runs it, once.
var measured = sync.OnceValues(func() ([]cost, error) {
	dir, err := os.MkdirTemp("", "growth")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary := filepath.Join(dir, "program")
	build := exec.Command("go", "build", "-cover", "-covermode=atomic", "-coverpkg="+counted, "-o", binary, "./program")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, err
	}
	run := exec.Command(binary)
	run.Env, run.Stderr = append(os.Environ(), "GOCOVERDIR="+dir), os.Stderr
	out, err := run.Output()
	if err != nil {
		return nil, err
	}
	var list []cost
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		var c cost
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
})

// A parser's work grows as its input does: for four times the input four times the
// steps and allocations, with a tenth for what is rounded; and of bytes twice that,
// since a slice that grows leaves its former selves behind. What grows with the
// square takes sixteen times. The constants stand for what does not grow at all.
func (c cost) exceeded(four cost) (why string) {
	if c.Parser != four.Parser || c.Form != four.Form {
		return "two runs that are not of one form"
	}
	times := func(n, most float64) uint64 {
		return uint64(float64(n) * most * float64(four.Input) / float64(max(1, c.Input)))
	}
	switch {
	case four.Panic != "":
		return "it panics: " + four.Panic
	case four.Steps > times(float64(c.Steps), 1.15)+20_000:
		return "steps"
	case four.Allocations > times(float64(c.Allocations), 1.15)+500:
		return "allocations"
	case four.Bytes > times(float64(c.Bytes), 2)+64<<10:
		return "bytes"
	case four.Bytes > uint64(four.Multiple*four.Input+four.Constant):
		return "more bytes than it says"
	case four.Answer > 16<<10 || four.Details > 20:
		return "the answer"
	}
	return ""
}

func TestEveryParserIsLinear(t *testing.T) {
	t.Parallel()
	list, err := measured()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 10_000 || len(list)%2 != 0 {
		t.Fatalf("only %d runs", len(list))
	}
	for i := 0; i < len(list); i += 2 {
		if why := list[i].exceeded(list[i+1]); why != "" {
			t.Errorf("%s, %s: %s\n%+v\n%+v", list[i].Parser, list[i].Form, why, list[i], list[i+1])
		}
	}
}

// What the parsers cost before they were mended, as the program counted it: the
// test finds each of them.
func TestWhatWasQuadraticIsFound(t *testing.T) {
	t.Parallel()
	for name, runs := range quadratic {
		if runs[0].exceeded(runs[1]) == "" {
			t.Errorf("%s is let through: %+v", name, runs)
		}
	}
}

var quadratic = map[string][2]cost{
	"blanks behind a value, walked back one by one": {
		{Input: 4097, Steps: 8407135, Multiple: 1, Constant: 4 << 10},
		{Input: 16385, Steps: 134291551, Allocations: 7, Bytes: 5576, Multiple: 1, Constant: 4 << 10},
	},
	"a path for each name that is given twice": {
		{Input: 4104, Steps: 135572, Allocations: 4946, Bytes: 1110216, Answer: 2903, Details: 20, Multiple: 64, Constant: 256 << 10},
		{Input: 16393, Steps: 541149, Allocations: 19698, Bytes: 16135464, Answer: 2903, Details: 20, Multiple: 64, Constant: 256 << 10},
	},
	"a text that is read again for each tool": {
		{Input: 2156, Steps: 390678, Allocations: 3518, Bytes: 236400, Multiple: 128, Constant: 1 << 20},
		{Input: 8311, Steps: 4927191, Allocations: 11312, Bytes: 1043768, Multiple: 128, Constant: 1 << 20},
	},
}

// inner are packages whose input is written by people or by this machine alone: their packages need no row.
var inner = map[string]string{
	"platform/storage/backup":                       "archives of the operator's own, read in a stream",
	"workers/payments/chain":                        "answers of the operator's own node, 16 KiB at most",
	"controlplane/accounts/billing/provider/stripe": "answers of the operator's own provider, 256 KiB at most",
	"controlplane/accounts/apikeys":                 "bodies, which respond reads: e2e asks every operation",
	"dev/attend":                                    "what a process of this machine says",
	"dev/pgserver":                                  "what a process of this machine says",
	"dev/toolchain":                                 "modules of the toolchain",
	"envoy":                                         "settings of the operator, and answers of Envoy's own admin interface",
	"platform/process/bindcheck":                    "tables of the kernel",
	"envoy/relay":                                   "files of its own",
	"runtime/providers":                             "a file of the operator's",
	"media/live/transports":                         "what a program of the operator says, in lines of 4 KiB at most",
	"sdk/go":                                        "a module of its own: events of 4 MiB at most, read in a stream, in the caller's process",
	"media/live/omt":                                "frames of 1 MiB at most, read in a stream from the operator's network",
}

var target = regexp.MustCompile(`(?m)^func Fuzz\w+`)

// A package that has a fuzz target reads what others write: it has a row.
func TestEveryFuzzedPackageHasARow(t *testing.T) {
	t.Parallel()
	list, err := measured()
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for _, c := range list {
		pkg, _, _ := strings.Cut(c.Parser, ":")
		rows[pkg] = true
	}
	root, seen := os.DirFS("../.."), 0
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), ".") && name != "." {
			return fs.SkipDir
		}
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil || !target.Match(text) {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(name))
		seen++
		if !rows[pkg] && inner[pkg] == "" {
			t.Errorf("%s: its parsers are not in bench/growth/program, and no reason is given here", pkg)
		}
		return nil
	})
	if err != nil || seen < 40 {
		t.Fatalf("%d files with fuzz targets: %v", seen, err)
	}
}
