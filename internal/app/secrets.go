package app

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/storage/secretbox"
)

// The products that this binary serves by processes of their own, by the names
// under which the configuration leads to them.
const (
	mediaProduct   = "media"
	runtimeProduct = identityheader.Vouching
)

// identities are the secrets of SLUICE_IDENTITY_SECRETS: the platform's, and the
// products' own, which stand there as NAME:DIGITS.
type identities struct {
	platform [][]byte
	own      []identity.Secret
}

// identities reads them. The error does not show a value.
func (e Environment) identities() (s identities, err error) {
	const name = "SLUICE_IDENTITY_SECRETS"
	text, err := e.Require(name)
	if err != nil {
		return s, err
	}
	for part := range strings.SplitSeq(text, ",") {
		product, digits, own := strings.Cut(strings.TrimSpace(part), ":")
		if !own {
			digits = product
		}
		b, err := hex.DecodeString(digits)
		if err != nil || len(b) != 32 || own && product == "" {
			return identities{}, fmt.Errorf("%s must be 64 hexadecimal digits each, joined by commas; those of one product have its name and a colon before them", name)
		}
		if own {
			s.own = append(s.own, identity.Secret{Product: product, Key: b})
		} else {
			s.platform = append(s.platform, b)
		}
	}
	return s, nil
}

// newVerifier checks the identity headers that edges sign for a product. leads says
// which products lead here; it matters where the platform's secret is held.
func (e Environment) newVerifier(leads func(context.Context, string) bool) (identity.Verifier, error) {
	s, err := e.identities()
	if err != nil {
		return identity.Verifier{}, err
	}
	v := identity.Verifier{Leads: leads, Own: s.own, Now: e.now}
	if len(s.platform) > 0 {
		v.Secrets = func() [][]byte { return s.platform }
	}
	return v, nil
}

// only is true of one product.
func only(name string) func(context.Context, string) bool {
	return func(_ context.Context, product string) bool { return product == name }
}

// platformSecret is the one that edges sign with.
func (e Environment) platformSecret() (secret [32]byte, err error) {
	s, err := e.identities()
	if err != nil {
		return secret, err
	}
	if len(s.platform) == 0 {
		return secret, errors.New("SLUICE_IDENTITY_SECRETS has secrets of products only: a control plane needs the platform's, from which they are derived")
	}
	return [32]byte(s.platform[0]), nil
}

// productsAt are the products of the newest configuration that lead to an address
// such as ${api}. A product that is new may be asked for before its version has
// been read, so that a name that is not there is looked for in the database.
func productsAt(current *config.Current, address string) func(context.Context, string) bool {
	leads := func(v config.Version, name string) bool {
		for _, p := range v.Document.Products {
			for _, u := range p.Upstreams {
				if p.Name == name && u.Address == address {
					return true
				}
			}
		}
		return false
	}
	return func(ctx context.Context, name string) bool {
		v, err := current.Get(ctx)
		if err == nil && leads(v, name) {
			return true
		}
		v, err = current.Store.Latest(ctx)
		return err == nil && leads(v, name)
	}
}

// mediaKeyPrefix marks a key of SLUICE_SECRETS_KEY that is the media product's own.
const mediaKeyPrefix = mediaProduct + ":"

// secretsKeys are the keys of SLUICE_SECRETS_KEY, the first of which encrypts.
func (e Environment) secretsKeys() (keys []string) {
	for _, k := range e.List("SLUICE_SECRETS_KEY") {
		keys = append(keys, strings.TrimPrefix(k, mediaKeyPrefix))
	}
	return keys
}

// mediaKeys are the media product's keys: those that are given as such, and those
// that follow from the platform's.
func (e Environment) mediaKeys() (keys []string, err error) {
	for _, k := range e.List("SLUICE_SECRETS_KEY") {
		own, given := strings.CutPrefix(k, mediaKeyPrefix)
		if !given {
			b, err := hkdf.Expand(sha256.New, []byte(k), "secrets of the product media", 32)
			if err != nil {
				return nil, err
			}
			own = hex.EncodeToString(b)
		}
		keys = append(keys, own)
	}
	return keys, nil
}

// mediaBox encrypts what the media product stores, by the first key that is given, or
// by the product's own, and decrypts what either or the platform's has encrypted.
func (e Environment) mediaBox(byOwn bool) (*secretbox.Box, error) {
	own, err := e.mediaKeys()
	if err != nil {
		return nil, err
	}
	if byOwn {
		return secretbox.New(append(own, e.secretsKeys()...)...)
	}
	return secretbox.New(append(e.secretsKeys(), own...)...)
}

// ProductSettings are the secrets of one product, as variables of its process.
func (e Environment) ProductSettings(product string) (map[string]string, error) {
	s, err := e.identities()
	if err != nil {
		return nil, err
	}
	var list []string
	for _, secret := range s.platform {
		list = append(list, product+":"+hex.EncodeToString(identityheader.ProductSecret(secret, product)))
	}
	if len(list) == 0 {
		return nil, errors.New("SLUICE_IDENTITY_SECRETS has no secret of the platform: those of products are derived from it")
	}
	set := map[string]string{"SLUICE_IDENTITY_SECRETS": strings.Join(list, ",")}
	if product != mediaProduct || e.Get("SLUICE_SECRETS_KEY") == "" {
		return set, nil
	}
	own, err := e.mediaKeys()
	set["SLUICE_SECRETS_KEY"] = mediaKeyPrefix + strings.Join(own, ","+mediaKeyPrefix)
	return set, err
}
