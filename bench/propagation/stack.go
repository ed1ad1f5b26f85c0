package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/e2e/harness"
)

// fleet is how many edges there are.
const fleet = 3

// bed is a local stack with three edges.
type bed struct {
	*harness.Stack
	edges []string // URLs of gateways
}

// start runs `sluice up` over that many keys.
func start(ctx context.Context, keys int) (*bed, error) {
	env, gateways, err := harness.Edges(fleet)
	if err != nil {
		return nil, err
	}
	stack, err := harness.NewStack(env)
	if err != nil {
		return nil, err
	}
	b := &bed{Stack: stack}
	for _, addr := range gateways {
		b.edges = append(b.edges, "http://"+addr)
	}
	if err = b.insert(ctx, keys); err == nil {
		err = b.Up()
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// insert puts keys into the feed of a fresh database.
func (b *bed) insert(ctx context.Context, keys int) error {
	if err := b.Run(nil, "migrate"); err != nil {
		return err
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
	return harness.Until(func() error {
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
