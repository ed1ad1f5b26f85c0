package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/bench/load"
)

// fleet is how many edges there are.
const fleet = 3

// bed is a local stack with three edges.
type bed struct {
	dir   string
	env   map[string]string // what the stack runs with
	dev   map[string]string // dev.env
	edges []string          // URLs of gateways
	cmd   *exec.Cmd
}

func start(ctx context.Context, keys int) (*bed, error) {
	for _, name := range []string{"SLUICE_BIN", "SLUICE_ENVOY", "SLUICE_WASM_DIR", "SLUICE_TEST_DATABASE_URL"} {
		if os.Getenv(name) == "" {
			return nil, fmt.Errorf("%s is not set: run `make bench`", name)
		}
	}
	dir, err := os.MkdirTemp("", "sluice-bench-")
	if err != nil {
		return nil, err
	}
	b := &bed{dir: dir, env: map[string]string{}}
	if err := b.up(ctx, keys); err != nil {
		b.stop()
		return nil, err
	}
	return b, nil
}

// up runs `sluice up` over that many keys. The edges' ports are 100 apart.
func (b *bed) up(ctx context.Context, keys int) error {
	addrs, err := load.FreeAddrs(5)
	if err != nil {
		return err
	}
	b.env["SLUICE_STATE_DIR"], b.env["SLUICE_EDGES"], b.env["SLUICE_EDGE_CONCURRENCY"] = filepath.Join(b.dir, "state"), fmt.Sprint(fleet), "1"
	b.env["SLUICE_DATABASE_URL"] = os.Getenv("SLUICE_TEST_DATABASE_URL")
	b.env["SLUICE_GATEWAY_ADDR"], b.env["SLUICE_RUNTIME_ADDR"], b.env["SLUICE_ENVOY_ADMIN_ADDR"] = "127.0.0.1:19080", "127.0.0.1:19090", "127.0.0.1:19901"
	for i, name := range []string{"ADMIN_ADDR", "XDS_ADDR", "API_LISTEN", "RUNTIME_LISTEN", "MEDIA_LISTEN"} {
		b.env["SLUICE_"+name] = addrs[i]
	}
	if err := b.insert(ctx, keys); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(b.dir, "up.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	b.cmd = b.command(ctx, nil, "up")
	b.cmd.Stdout, b.cmd.Stderr = log, log
	if err := b.cmd.Start(); err != nil {
		return err
	}
	err = load.Until(func() error {
		text, err := os.ReadFile(log.Name())
		if err == nil && !strings.Contains(string(text), "ready in ") {
			err = errors.New("the stack is not ready: " + string(text[max(0, len(text)-500):]))
		}
		return err
	})
	if err != nil {
		return err
	}
	for i := range fleet {
		b.edges = append(b.edges, fmt.Sprintf("http://127.0.0.1:%d", 19080+100*i))
	}
	b.dev, err = variables(filepath.Join(b.dir, "state", "dev.env"))
	return err
}

// command is the product's binary with the stack's environment and extra.
func (b *bed) command(ctx context.Context, extra map[string]string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Getenv("SLUICE_BIN"), args...)
	cmd.Env = os.Environ()
	for _, m := range []map[string]string{b.env, extra} {
		for k, v := range m {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	return cmd
}

func variables(name string) (map[string]string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	vars := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			vars[k] = strings.Trim(v, "'")
		}
	}
	return vars, nil
}

func (b *bed) stop() {
	if b.cmd != nil && b.cmd.Process != nil {
		_ = b.cmd.Process.Signal(syscall.SIGTERM)
		_ = b.cmd.Wait()
	}
	_ = os.RemoveAll(b.dir)
}

// insert puts keys into the feed of a fresh database.
func (b *bed) insert(ctx context.Context, keys int) error {
	if out, err := b.command(ctx, nil, "migrate").CombinedOutput(); err != nil {
		return fmt.Errorf("sluice migrate: %w: %s", err, out)
	}
	conn, err := pgx.Connect(ctx, b.env["SLUICE_DATABASE_URL"])
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, fmt.Sprintf(`
		WITH feed AS (UPDATE edge_feed SET head = head + %[1]d RETURNING head)
		INSERT INTO edge_records (tag, record, seq)
		SELECT t.tag, t.tag || '\x01'::bytea || decode(repeat('00', 47), 'hex'), feed.head - %[1]d + n
		FROM feed, generate_series(1, %[1]d) n, LATERAL (SELECT substr(sha256(n::text::bytea), 1, 16) AS tag) t`, keys))
	if err != nil {
		return err
	}
	// Vacuum marks only what is known to be on disk as visible to all, and a
	// snapshot is ten times slower without those marks.
	for _, sql := range []string{`CHECKPOINT`, `VACUUM ANALYZE edge_records`} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// settle puts routes into the configuration, and waits until the edges have them,
// and all keys.
func (b *bed) settle(ctx context.Context, routes int) error {
	if err := b.document(ctx, routes); err != nil {
		return err
	}
	return load.Until(func() error {
		var v struct {
			Data []struct {
				ID      string
				Current bool
				Feed    struct{ Behind int64 }
			}
		}
		if err := b.admin(ctx, "GET", "/edges", nil, &v); err != nil {
			return err
		}
		for _, e := range v.Data {
			if !e.Current || e.Feed.Behind > 0 {
				return fmt.Errorf("%s is not current: %+v", e.ID, e)
			}
		}
		return nil
	})
}

// secrets are those of the stack's processes, and its addresses.
func (b *bed) secrets() (map[string]string, error) {
	vars, err := variables(filepath.Join(b.dir, "state", "secrets.env"))
	if err == nil {
		maps.Copy(vars, map[string]string{"SLUICE_PUBLIC_URL": b.edges[0]})
	}
	return vars, err
}
