package engine

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"

	"sluice.dev/sluice/media/playback/signing"
)

// readerName is the user as which the product reads.
const readerName = "product"

// Reader proves to an engine, which may be on another machine, that it is the product that
// reads: it has checked the viewer. Its password follows from the product's signing key,
// so that nobody has to be told it.
type Reader struct{ Keys *signing.Keys }

// password is the product's, as hexadecimal digits.
func (r Reader) password(ctx context.Context) (string, error) {
	key, err := r.Keys.Key(ctx)
	if err != nil {
		return "", err
	}
	derived, err := hkdf.Key(sha256.New, key, nil, "media engine: the product reads", sha256.Size)
	if err != nil {
		return "", fmt.Errorf("derive the password of the media engine: %w", err)
	}
	return hex.EncodeToString(derived), nil
}

// reads reports whether it is the product that asks.
func (r Reader) reads(ctx context.Context, q question) (bool, error) {
	if r.Keys == nil || q.User != readerName {
		return false, nil
	}
	want, err := r.password(ctx)
	return err == nil && subtle.ConstantTimeCompare([]byte(q.Password), []byte(want)) == 1, err
}

// Transport makes requests to the engine as the product, but for those that bring a
// credential of their own: a publisher's.
func (r Reader) Transport(next http.RoundTripper) http.RoundTripper {
	return trip(func(req *http.Request) (*http.Response, error) {
		if req.Header.Get("Authorization") == "" {
			password, err := r.password(req.Context())
			if err != nil {
				return nil, err
			}
			req = req.Clone(req.Context())
			req.SetBasicAuth(readerName, password)
		}
		return next.RoundTrip(req)
	})
}

// trip is a function that makes requests.
type trip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (t trip) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }
