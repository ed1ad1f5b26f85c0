package signing

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"

	"sluice.dev/sluice/platform/storage/postgres"
)

// keyLength is that of HMAC-SHA256's block security, in bytes.
const keyLength = 32

// Keys finds the product's signing key. The first replica to ask makes it; all
// others read the same one.
type Keys struct {
	DB postgres.DB

	mu  sync.Mutex
	key []byte
}

// Key returns the signing key.
func (k *Keys) Key(ctx context.Context) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key != nil {
		return k.key, nil
	}
	fresh := make([]byte, keyLength)
	rand.Read(fresh)
	if _, err := k.DB.Exec(ctx, `INSERT INTO media_secrets (name, value) VALUES ('tokens', $1) ON CONFLICT DO NOTHING`, fresh); err != nil {
		return nil, fmt.Errorf("make signing key: %w", err)
	}
	var stored []byte
	if err := k.DB.QueryRow(ctx, `SELECT value FROM media_secrets WHERE name = 'tokens'`).Scan(&stored); err != nil {
		return nil, fmt.Errorf("read signing key: %w", err)
	}
	k.key = stored
	return stored, nil
}
