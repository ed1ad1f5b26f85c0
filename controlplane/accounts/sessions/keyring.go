package sessions

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/clock"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/secretbox"
)

// Keyring holds the ES256 keys that sign tokens. They live in Postgres, so every
// replica signs with the newest and verifies with all; what was read is kept in
// memory for a short while.
type Keyring struct {
	// DB keeps the keys.
	DB postgres.DB
	// Box seals the private halves; nil: they are stored as they are, as they are
	// too while replicas that cannot read sealed ones may still run.
	Box *secretbox.Box
	// Now is the clock; nil: time.Now.
	Now func() time.Time

	mu     sync.Mutex
	keys   []signingKey // newest first
	readAt time.Time
}

// How long read keys are used before they are read again. A new key signs only
// after publishLead, when every replica and edge has had time to learn of it.
const (
	keyringTTL  = 30 * time.Second
	publishLead = 2 * time.Minute
)

// signingKey is a key as stored.
type signingKey struct {
	kid       string
	private   *ecdsa.PrivateKey
	createdAt time.Time
}

// JWK is the public half of a key (RFC 7517, RFC 7518 section 6.2.1).
type JWK struct {
	Type      string `json:"kty"`
	Curve     string `json:"crv"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
	ID        string `json:"kid"`
	X         string `json:"x"`
	Y         string `json:"y"`
}

// JWKS is the key set served at /.well-known/jwks.json.
type JWKS struct {
	Keys []JWK `json:"keys"`
}

// now is the time by the clock of k.
func (k *Keyring) now() time.Time { return clock.Or(k.Now) }

// signer returns the key to sign with: the newest that is old enough to be
// known everywhere, or the first there ever was. It makes that one if need be.
func (k *Keyring) signer(ctx context.Context) (signingKey, error) {
	keys, err := k.all(ctx, false)
	if err == nil && len(keys) == 0 {
		if _, err = k.create(ctx, time.Time{}); err == nil {
			keys, err = k.all(ctx, true)
		}
	}
	if err != nil {
		return signingKey{}, err
	}
	for _, key := range keys {
		if k.now().Sub(key.createdAt) >= publishLead {
			return key, nil
		}
	}
	return keys[len(keys)-1], nil
}

// public returns the public key with the given id. An unknown id is looked for
// in Postgres once more, at most once a second: another replica may have made it.
func (k *Keyring) public(ctx context.Context, kid string) (*ecdsa.PublicKey, bool, error) {
	for _, fresh := range []bool{false, true} {
		keys, err := k.all(ctx, fresh)
		if err != nil {
			return nil, false, err
		}
		for _, key := range keys {
			if key.kid == kid {
				return &key.private.PublicKey, true, nil
			}
		}
	}
	return nil, false, nil
}

// all returns the keys that are not retired, newest first.
func (k *Keyring) all(ctx context.Context, fresh bool) ([]signingKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	age := k.now().Sub(k.readAt)
	if len(k.keys) > 0 && age < keyringTTL && (!fresh || age < time.Second) {
		return k.keys, nil
	}
	rows, _ := k.DB.Query(ctx, `SELECT kid, private_der, created_at FROM signing_keys
		WHERE retired_at IS NULL OR retired_at > $1 ORDER BY created_at DESC, kid`, k.now())
	keys, err := pgx.CollectRows(rows, k.scan)
	if err != nil {
		return nil, fmt.Errorf("read signing keys: %w", err)
	}
	k.keys, k.readAt = keys, k.now()
	return keys, nil
}

// scan reads a row of kid, private_der, created_at.
func (k *Keyring) scan(row pgx.CollectableRow) (key signingKey, err error) {
	var stored []byte
	if err := row.Scan(&key.kid, &stored, &key.createdAt); err != nil {
		return key, err
	}
	key.private, err = k.Private(key.kid, stored)
	return key, err
}

// Rotate adds a key if the newest is older than age, and reports whether it
// did. The new key signs after two minutes; the others go on verifying for as
// long as a token lives, so no token fails before its end. Replicas may call it
// together: one of them adds the key.
func (k *Keyring) Rotate(ctx context.Context, age, tokenLife time.Duration) (bool, error) {
	added, err := k.create(ctx, k.now().Add(-age))
	if err != nil || !added {
		return false, err
	}
	end := k.now().Add(publishLead + tokenLife)
	_, err = k.DB.Exec(ctx, `UPDATE signing_keys SET retired_at = $1
		WHERE retired_at IS NULL AND created_at < (SELECT max(created_at) FROM signing_keys)`, end)
	if err != nil {
		return true, fmt.Errorf("retire signing keys: %w", err)
	}
	_, err = k.all(ctx, true)
	return true, err
}

// Replace adds a key whatever the age of the newest, for when one has leaked. Every
// other key ends when the new one signs, two minutes later, and each token of
// theirs with it: people sign in again.
func (k *Keyring) Replace(ctx context.Context) error {
	if _, err := k.create(ctx, k.now()); err != nil {
		return err
	}
	_, err := k.DB.Exec(ctx, `UPDATE signing_keys SET retired_at = $1
		WHERE (retired_at IS NULL OR retired_at > $1) AND created_at < (SELECT max(created_at) FROM signing_keys)`, k.now().Add(publishLead))
	if err != nil {
		return fmt.Errorf("retire signing keys: %w", err)
	}
	_, err = k.all(ctx, true)
	return err
}

// create stores a new key, unless there is one that was made after the given
// time: several replicas may want one at once. It reports whether it did.
func (k *Keyring) create(ctx context.Context, after time.Time) (added bool, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return false, err
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return false, err
	}
	kid := thumbprint(&private.PublicKey)
	err = postgres.InTx(ctx, k.DB, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `LOCK TABLE signing_keys IN SHARE ROW EXCLUSIVE MODE`); err != nil {
			return fmt.Errorf("lock signing keys: %w", err)
		}
		upgrading, err := k.upgrading(ctx, tx)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `INSERT INTO signing_keys (kid, private_der, created_at) SELECT $1, $2, $3
			WHERE NOT EXISTS (SELECT FROM signing_keys WHERE retired_at IS NULL AND created_at > $4)`,
			kid, k.storedForm(kid, der, upgrading), k.now(), after)
		if err != nil {
			return fmt.Errorf("store signing key: %w", err)
		}
		added = tag.RowsAffected() == 1
		return nil
	})
	return added, err
}

// Public returns the key set that verifies tokens; it makes the first key if
// there is none.
func (k *Keyring) Public(ctx context.Context) (JWKS, error) {
	if _, err := k.signer(ctx); err != nil {
		return JWKS{}, err
	}
	keys, err := k.all(ctx, false)
	set := JWKS{Keys: []JWK{}}
	for _, key := range keys {
		set.Keys = append(set.Keys, key.jwk())
	}
	return set, err
}

// jwk gives the public half, and nothing of the private one.
func (key signingKey) jwk() JWK {
	x, y := coordinates(&key.private.PublicKey)
	return JWK{"EC", "P-256", "sig", "ES256", key.kid, x, y}
}

// coordinates are those of the point p, in base64url, 32 bytes each.
func coordinates(p *ecdsa.PublicKey) (x, y string) {
	point, err := p.Bytes() // 4, x, y
	if err != nil {
		panic(err) // the key was made or parsed by crypto/ecdsa
	}
	b64 := base64.RawURLEncoding.EncodeToString
	return b64(point[1:33]), b64(point[33:])
}

// thumbprint is the key's id (RFC 7638).
func thumbprint(p *ecdsa.PublicKey) string {
	x, y := coordinates(p)
	sum := sha256.Sum256([]byte(`{"crv":"P-256","kty":"EC","x":"` + x + `","y":"` + y + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
