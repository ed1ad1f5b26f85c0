package sessions

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/reencrypt"
)

// derSequence is the first byte of a private key in DER (SEC 1: a SEQUENCE).
// What is sealed begins with another one: its version.
const derSequence = 0x30

// Private returns the key of the row kid from what is stored there: sealed, or
// in DER as rows of before have it. It fails where the box does not open it.
func (k *Keyring) Private(kid string, stored []byte) (*ecdsa.PrivateKey, error) {
	if !isPlain(stored) {
		if k.Box == nil {
			return nil, fmt.Errorf("signing key %s is sealed and there is no key to open it", kid)
		}
		var err error
		if stored, err = k.Box.Open(stored, sealRow(kid)); err != nil {
			return nil, fmt.Errorf("signing key %s: %w: was SLUICE_SECRETS_KEY changed?", kid, err)
		}
	}
	private, err := x509.ParseECPrivateKey(stored)
	if err != nil {
		return nil, errors.New("signing key " + kid + " is no private key") // the cause could quote it
	}
	return private, nil
}

// isPlain reports whether what is stored of a key is not sealed.
func isPlain(stored []byte) bool { return len(stored) > 0 && stored[0] == derSequence }

// Sealed is where signing keys are stored, for reseal.
func Sealed() reencrypt.Column {
	return reencrypt.Column{Table: "signing_keys", ID: "kid", Value: "private_der", Row: sealRow, Plain: isPlain}
}

// sealRow is what a sealed signing key is bound to.
func sealRow(kid string) string { return "signing key " + kid }

// storedForm is what is stored of a key in DER: sealed, unless replicas that
// cannot read that may still run.
func (k *Keyring) storedForm(kid string, der []byte, upgrading bool) []byte {
	if k.Box == nil || upgrading {
		return der
	}
	return k.Box.Seal(der, sealRow(kid))
}

// upgrading reports whether replicas of before keys were sealed may still run:
// seal_after says until when a key must stay as they read it.
func (k *Keyring) upgrading(ctx context.Context, tx pgx.Tx) (is bool, err error) {
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM signing_keys WHERE seal_after > $1)`, k.now()).Scan(&is)
	if err != nil {
		return false, fmt.Errorf("read when keys may be sealed: %w", err)
	}
	return is, nil
}

// sealAll seals the keys that were stored before keys were sealed, once every
// replica reads sealed ones.
func (k *Keyring) sealAll(ctx context.Context) error {
	if k.Box == nil {
		return nil
	}
	return postgres.InTx(ctx, k.DB, func(tx pgx.Tx) error {
		upgrading, err := k.upgrading(ctx, tx)
		if err != nil || upgrading {
			return err
		}
		type row struct {
			Kid string
			DER []byte
		}
		rows, _ := tx.Query(ctx, `SELECT kid, private_der FROM signing_keys WHERE get_byte(private_der, 0) = $1 FOR UPDATE`, derSequence)
		plain, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
		if err != nil {
			return fmt.Errorf("read signing keys to seal: %w", err)
		}
		for _, r := range plain {
			_, err := tx.Exec(ctx, `UPDATE signing_keys SET private_der = $2 WHERE kid = $1`, r.Kid, k.Box.Seal(r.DER, sealRow(r.Kid)))
			if err != nil {
				return fmt.Errorf("seal signing key: %w", err)
			}
		}
		return nil
	})
}
