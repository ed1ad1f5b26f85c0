package config

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Memory keeps the newest version that a process has read or stored, so that a
// large document is not read from the database again and again: a version never
// changes. Stores of one process may share one; its zero value is empty. Who gets
// a document must not alter what its lists and maps hold.
type Memory struct {
	mu     sync.Mutex
	newest Version
}

// keep notes a version that is in the database. A nil Memory forgets it.
func (m *Memory) keep(v Version) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if v.Number > m.newest.Number {
		m.newest = v
	}
}

// has returns the version with that number, if it is the one that is kept.
func (m *Memory) has(number int64) (Version, bool) {
	if m == nil {
		return Version{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.newest, number != 0 && m.newest.Number == number
}

// latest reads the newest version, as db sees it, unless m has it.
func latest(ctx context.Context, db postgres.DB, m *Memory) (Version, error) {
	var number int64
	if err := db.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM config_versions`).Scan(&number); err != nil {
		return Version{}, fmt.Errorf("look for the newest configuration: %w", err)
	}
	if number == 0 {
		return Version{}, &apierror.Error{Code: decision.NotFound, Cause: pgx.ErrNoRows}
	}
	if v, ok := m.has(number); ok {
		return v, nil
	}
	return oneVersion(ctx, db, `WHERE version = $1`, number)
}
