package main

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/bench/load"
)

// fleet is how many edges there are.
const fleet = 3

// bed is a local stack with three edges.
type bed struct {
	*load.Stack
	edges []string // URLs of gateways
}

// start runs `sluice up` over that many keys. The edges' ports are 100 apart.
func start(ctx context.Context, keys int) (*bed, error) {
	stack, err := load.NewStack(map[string]string{
		"SLUICE_EDGES": strconv.Itoa(fleet), "SLUICE_EDGE_CONCURRENCY": "1",
		"SLUICE_GATEWAY_ADDR": "127.0.0.1:19080", "SLUICE_RUNTIME_ADDR": "127.0.0.1:19090", "SLUICE_ENVOY_ADMIN_ADDR": "127.0.0.1:19901", "SLUICE_EDGE_METRICS_ADDR": "127.0.0.1:19902",
	})
	if err != nil {
		return nil, err
	}
	b := &bed{Stack: stack}
	for i := range fleet {
		b.edges = append(b.edges, fmt.Sprintf("http://127.0.0.1:%d", 19080+100*i))
	}
	err = b.insert(ctx, keys)
	if err == nil {
		err = b.Up(ctx)
	}
	if err != nil {
		b.Stop()
		return nil, err
	}
	return b, nil
}

// insert puts keys into the feed of a fresh database.
func (b *bed) insert(ctx context.Context, keys int) error {
	if out, err := b.Command(ctx, nil, "migrate").CombinedOutput(); err != nil {
		return fmt.Errorf("sluice migrate: %w: %s", err, out)
	}
	conn, err := pgx.Connect(ctx, b.Env["SLUICE_DATABASE_URL"])
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
	vars, err := b.Variables("secrets.env")
	if err == nil {
		maps.Copy(vars, map[string]string{"SLUICE_PUBLIC_URL": b.edges[0]})
	}
	return vars, err
}
