//go:build clients

package e2e

// The official clients, each with lock files of its own under clients/. They
// take minutes to install the first time, so `make test` leaves them out, and
// `make clients` runs them.

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// chatSeen is what a client's program prints of one client.
type chatSeen struct {
	Text struct {
		Text, Finish string
		Total, Sum   int
	}
	Tools  string
	Errors *struct{ Unknown, Invalid, Key int }
	Cancel *bool
	Models []string
}

// program drives public clients; its source is a folder of clients/.
type program struct {
	name, lock string
	install    []string // run in the folder of the installation
	run        []string
}

var (
	npmInstall = []string{"npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"}
	pipInstall = []string{"sh", "-c", "python3 -m venv venv && venv/bin/pip install -q -r requirements.txt"}
	nodeMain   = []string{"node", "main.mjs"}
	pythonMain = []string{"venv/bin/python", "main.py"}
)

// prints runs p with further variables and returns what it prints.
func (p program) prints(t *testing.T, env ...string) string {
	t.Helper()
	dir := installed(t, p.name, p.lock, p.install)
	cmd := exec.Command(p.run[0], p.run[1:]...)
	if strings.Contains(p.run[0], "/") {
		cmd.Path = filepath.Join(dir, p.run[0])
	}
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestOfficialClients(t *testing.T) {
	s := theStack(t)
	for _, c := range []struct {
		program
		clients []string
	}{
		{program{"python", "requirements.txt", pipInstall, pythonMain}, []string{"openai", "langchain"}},
		{program{"node", "package-lock.json", npmInstall, nodeMain}, []string{"openai", "langchain", "aisdk"}},
		{program{"go", "go.sum", []string{"go", "build", "-o", "clients", "."}, []string{"./clients"}}, []string{"openai"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			all := intoText[map[string]chatSeen](t, c.prints(t, "BASE="+s.dev["SLUICE_RUNTIME_URL"]+"/v1", "KEY="+s.dev["SLUICE_API_KEY"]))
			for _, client := range c.clients {
				all[client].check(t, client)
			}
		})
	}
}

// check holds a client to what it must have seen: the text, the usage once, the
// tool call, errors with their status, and a stream that it could leave.
func (s chatSeen) check(t *testing.T, client string) {
	t.Helper()
	if s.Text.Text != "one two three" || s.Text.Finish != "stop" || s.Text.Total == 0 || s.Text.Total != s.Text.Sum || s.Text.Total > 20 {
		t.Errorf("%s: text %+v", client, s.Text)
	}
	if s.Tools != `get_weather{"city":"use get_weather"}` {
		t.Errorf("%s: tool call %s", client, s.Tools)
	}
	if client != "openai" {
		return
	}
	if s.Errors == nil || s.Errors.Unknown != 404 || s.Errors.Invalid != 400 || s.Errors.Key != 401 {
		t.Errorf("%s: errors %+v", client, s.Errors)
	}
	if s.Cancel == nil || !*s.Cancel || len(s.Models) < 2 {
		t.Errorf("%s: cancel %v, models %v", client, s.Cancel, s.Models)
	}
}

// installed copies a client's program to a folder that is named by its contents
// and installs what it needs there, once.
func installed(t *testing.T, name, lock string, install []string) string {
	t.Helper()
	src := filepath.Join("clients", name)
	files, err := os.ReadDir(src)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(src, lock))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	dir, err := filepath.Abs(filepath.Join("..", ".sluice", "clients", name+"-"+hex.EncodeToString(sum[:4])))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(src, f.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, f.Name()), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	done := filepath.Join(dir, ".installed")
	if _, err := os.Stat(done); err == nil && name != "go" {
		return dir
	}
	cmd := exec.Command(install[0], install[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("install: %v\n%s", err, out)
	}
	if err := os.WriteFile(done, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}
