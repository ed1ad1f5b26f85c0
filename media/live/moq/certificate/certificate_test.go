package certificate_test

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"testing"
	"time"

	"sluice.dev/sluice/media/live/moq/certificate"
	"sluice.dev/sluice/media/playback/signing"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// Whoever serves and whoever tells the hash are two processes with one database.
func TestAnotherProcessKnowsTheHash(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	source := func() *certificate.Source {
		return &certificate.Source{Keys: &signing.Keys{DB: pool}, Now: func() time.Time { return now }}
	}
	serving, telling := source(), source()
	for range 40 {
		hashes, err := telling.Hashes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c, err := serving.Shown(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(c.Certificate[0])
		if hashes[0] != hex.EncodeToString(sum[:]) || hashes[0] == hashes[1] {
			t.Fatalf("%x is shown, %v are told", sum, hashes)
		}
		x, err := x509.ParseCertificate(c.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		if now.Before(x.NotBefore) || now.After(x.NotAfter.Add(-24*time.Hour)) || x.NotAfter.Sub(x.NotBefore) >= 14*24*time.Hour {
			t.Errorf("at %s: valid from %s to %s", now, x.NotBefore, x.NotAfter)
		}
		now = now.Add(17 * time.Hour)
	}
}

func TestEachProductAndPeriodHasAKeyOfItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, secret := range []string{"one", "two"} {
		for n := range int64(3) {
			a, err := certificate.Make([]byte(secret), n)
			b, again := certificate.Make([]byte(secret), n)
			if err != nil || again != nil || !bytes.Equal(a.Certificate[0], b.Certificate[0]) {
				t.Fatalf("%v %v, or two certificates of one period", err, again)
			}
			seen[string(a.Certificate[0])] = true
		}
	}
	if len(seen) != 6 {
		t.Errorf("%d certificates", len(seen))
	}
}
