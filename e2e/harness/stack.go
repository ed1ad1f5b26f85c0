package harness

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/e2e/freeport"
)

// addresses are the variables of the addresses that a stack listens on, those of an
// edge first.
var addresses = []string{"SLUICE_GATEWAY_ADDR", "SLUICE_RUNTIME_ADDR", "SLUICE_ENVOY_ADMIN_ADDR", "SLUICE_EDGE_METRICS_ADDR",
	"SLUICE_ADMIN_ADDR", "SLUICE_XDS_ADDR", "SLUICE_API_LISTEN", "SLUICE_RUNTIME_LISTEN", "SLUICE_MEDIA_LISTEN", "SLUICE_WORKER_LISTEN"}

// Need says which of these variables is not set.
func Need(names ...string) error {
	for _, name := range names {
		if os.Getenv(name) == "" {
			return fmt.Errorf("%s is not set: run `make test` or `make bench`", name)
		}
	}
	return nil
}

// Settings are an environment for a stack in dir, on free ports, without a media
// engine, and with the ffmpeg of the environment, if it names one.
func Settings(dir, database string) (map[string]string, error) {
	if err := Need("SLUICE_BIN", "SLUICE_ENVOY", "SLUICE_WASM_DIR"); err != nil {
		return nil, err
	}
	env, err := listening(addresses)
	if err != nil {
		return nil, err
	}
	maps.Copy(env, map[string]string{
		"SLUICE_STATE_DIR": dir, "SLUICE_DATABASE_URL": database, "SLUICE_MEDIA_ENGINE": "off", "SLUICE_FFMPEG": cmp.Or(os.Getenv("SLUICE_FFMPEG"), "off"), "SLUICE_SPEECH": cmp.Or(os.Getenv("SLUICE_SPEECH"), "off"),
		"SLUICE_VOICE": cmp.Or(os.Getenv("SLUICE_VOICE"), "off"), "SLUICE_TESSERACT": cmp.Or(os.Getenv("SLUICE_TESSERACT"), "off"), "SLUICE_ANNOUNCE": "0s",
		"SLUICE_ENVOY": os.Getenv("SLUICE_ENVOY"), "SLUICE_WASM_DIR": os.Getenv("SLUICE_WASM_DIR"),
	})
	return env, nil
}

// EdgeSettings are those in which an edge of its own differs from its stack.
func EdgeSettings(name, dir string) (map[string]string, error) {
	env, err := listening(addresses[:4])
	if err != nil {
		return nil, err
	}
	maps.Copy(env, map[string]string{"SLUICE_EDGE_NAME": name, "SLUICE_STATE_DIR": dir, "SLUICE_EDGE_CONCURRENCY": "1"})
	return env, nil
}

// Edges are the settings by which `up` starts n edges, whose ports it derives from
// those of the first, and the addresses of their gateways.
func Edges(n int) (env map[string]string, gateways []string, err error) {
	rows, err := freeport.Rows(4, n, 100)
	if err != nil {
		return nil, nil, err
	}
	env = map[string]string{"SLUICE_EDGES": strconv.Itoa(n), "SLUICE_EDGE_CONCURRENCY": "1"}
	for i, row := range rows {
		env[addresses[i]] = row[0]
	}
	return env, rows[0], nil
}

// listening gives each variable a free address.
func listening(variables []string) (map[string]string, error) {
	addrs, err := freeport.Addrs(len(variables))
	env := map[string]string{}
	for i, addr := range addrs {
		env[variables[i]] = addr
	}
	return env, err
}

// Command is the shipped binary with an environment that holds env and nothing else
// of Sluice's.
func Command(env map[string]string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Getenv("SLUICE_BIN"), args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "SLUICE_") })
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	return cmd
}

// Run runs a command of the shipped binary to its end.
func Run(env map[string]string, args ...string) error {
	if out, err := Command(env, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("sluice %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// ReadEnv reads a file of variables, as `sluice up` and `sluice seed` write them.
func ReadEnv(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	vars := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			vars[k] = strings.Trim(v, `'"`)
		}
	}
	return vars, nil
}

// Up starts `sluice up` with env, and returns it with what dev.env says once it is
// ready. Nothing runs after an error.
func Up(env map[string]string) (*Process, map[string]string, error) {
	p, err := Start(Command(env, "up"))
	if err != nil {
		return nil, nil, err
	}
	err = p.Writes("ready in ")
	var dev map[string]string
	if err == nil {
		dev, err = ReadEnv(filepath.Join(env["SLUICE_STATE_DIR"], "dev.env"))
	}
	if err != nil {
		_ = p.Stop() // it may have ended
		return nil, nil, err
	}
	return p, dev, nil
}

// Stack is `sluice up` in a folder of its own, on the database of
// SLUICE_TEST_DATABASE_URL.
type Stack struct {
	*Process                   // nil before Up
	Dir      string            // removed by Close
	Env      map[string]string // what its processes are given; Up reads it
	Dev      map[string]string // dev.env, once Up has returned
}

// NewStack makes the folder and chooses the ports, and starts nothing. extra
// comes on top, and stands in for a port.
func NewStack(extra map[string]string) (*Stack, error) {
	if err := Need("SLUICE_TEST_DATABASE_URL"); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "sluice-stack-")
	if err != nil {
		return nil, err
	}
	env, err := Settings(dir, os.Getenv("SLUICE_TEST_DATABASE_URL"))
	if err != nil {
		return nil, err
	}
	maps.Copy(env, extra)
	return &Stack{Dir: dir, Env: env}, nil
}

// Up starts the stack and waits until it is ready.
func (s *Stack) Up() (err error) {
	s.Process, s.Dev, err = Up(s.Env)
	return err
}

// Run runs a command to its end with the stack's environment, and extra on top.
func (s *Stack) Run(extra map[string]string, args ...string) error {
	env := maps.Clone(s.Env)
	maps.Copy(env, extra)
	return Run(env, args...)
}

// Close stops the stack, if it is up, and removes its folder.
func (s *Stack) Close() {
	if s.Process != nil {
		_ = s.Stop()
	}
	_ = os.RemoveAll(s.Dir)
}
