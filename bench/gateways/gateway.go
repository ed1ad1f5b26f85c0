package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/bench/testbed"
	"sluice.dev/sluice/e2e/freeport"
)

// gateway is a public gateway, and how to make it check what it can of a request.
type gateway struct {
	name string // and what it checks
	from source
	// files are written to the bench's folder; in them, in args and env these stand
	// for what they say: ADDR, UPSTREAM, KEY (the text of the API key), DIR (the
	// bench's folder), ROOT (of the installation).
	files map[string]string
	args  []string // the first is the program, below ROOT
	env   []string
}

// keys is how many keys a gateway with a table of them knows beside the bench's.
const keys = 1000

// start installs the gateway, if that is wanted and it is not there, and runs it.
func (g gateway) start(b *testbed.Bed) (*testbed.Subject, error) {
	root, err := g.from.root()
	if err != nil {
		return nil, err
	}
	addrs, err := freeport.Addrs(1)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(b.Dir, "gateway-")
	if err != nil {
		return nil, err
	}
	key := b.Dev["SLUICE_API_KEY"]
	fill := strings.NewReplacer("ADDR", addrs[0], "UPSTREAM", b.Upstream, "KEY", key, "DIR", dir, "ROOT", root).Replace
	for name, text := range g.files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(fill(text)), 0o600); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "keys"), table(key), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(fill(g.args[0]))
	for _, a := range g.args[1:] {
		cmd.Args = append(cmd.Args, fill(a))
	}
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOMAXPROCS=1")
	for _, e := range g.env {
		cmd.Env = append(cmd.Env, fill(e))
	}
	pid, err := b.Launch(cmd)
	if err != nil {
		return nil, err
	}
	s := &testbed.Subject{Name: g.name, PID: pid, Request: b.Keyed(addrs[0], key)}
	return s, s.Ready()
}

// table is a file with a line for each key: the key and its account.
func table(key string) []byte {
	b := fmt.Appendf(nil, "%s account-0\n", key)
	for n := range keys {
		b = fmt.Appendf(b, "slk_%045d account-%d\n", n+1, n+1)
	}
	return b
}
