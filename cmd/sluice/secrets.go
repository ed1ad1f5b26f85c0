package main

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/controlplane/gateway/config"
	edge "sluice.dev/sluice/filters/identity"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/storage/secretbox"
)

// The products that this binary serves by processes of their own, by the names
// under which the configuration leads to them.
const (
	mediaProduct   = "media"
	runtimeProduct = edge.Vouching
)

// identities are the secrets of SLUICE_IDENTITY_SECRETS: the platform's, and the
// products' own, which stand there as NAME:DIGITS.
type identities struct {
	platform [][]byte
	own      []identity.Secret
}

// identities reads them. The error does not show a value.
func (e environment) identities() (s identities, err error) {
	const name = "SLUICE_IDENTITY_SECRETS"
	text, err := e.require(name)
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

// verifier checks the identity headers that edges sign for a product. leads says
// which products lead here; it matters where the platform's secret is held.
func (e environment) verifier(leads func(context.Context, string) bool) (identity.Verifier, error) {
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
func (e environment) platformSecret() (secret [32]byte, err error) {
	s, err := e.identities()
	if err != nil {
		return secret, err
	}
	if len(s.platform) == 0 {
		return secret, errors.New("SLUICE_IDENTITY_SECRETS has secrets of products only: a control plane needs the platform's, from which they are derived")
	}
	return [32]byte(s.platform[0]), nil
}

// leadingTo are the products of the newest configuration that lead to an address
// such as ${api}. A product that is new may be asked for before its version has
// been read, so that a name that is not there is looked for in the database.
func leadingTo(current *config.Current, address string) func(context.Context, string) bool {
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

// ownPrefix marks a key of SLUICE_SECRETS_KEY that is the media product's own.
const ownPrefix = mediaProduct + ":"

// sealing are the keys of SLUICE_SECRETS_KEY, the first of which seals.
func (e environment) sealing() (keys []string) {
	for _, k := range e.list("SLUICE_SECRETS_KEY") {
		keys = append(keys, strings.TrimPrefix(k, ownPrefix))
	}
	return keys
}

// ownKey derives the media product's key from one of the platform's.
func ownKey(key string) (string, error) {
	b, err := hkdf.Expand(sha256.New, []byte(key), "secrets of the product media", 32)
	return hex.EncodeToString(b), err
}

// ownKeys are the media product's keys: those that are given as such, and those
// that follow from the platform's.
func (e environment) ownKeys() (keys []string, err error) {
	for _, k := range e.list("SLUICE_SECRETS_KEY") {
		own, given := strings.CutPrefix(k, ownPrefix)
		if !given {
			if own, err = ownKey(k); err != nil {
				return nil, err
			}
		}
		keys = append(keys, own)
	}
	return keys, nil
}

// mediaBox seals what the media product stores, by the first key that is given, and
// opens what was sealed by the platform's or by the product's own.
func (e environment) mediaBox() (*secretbox.Box, error) {
	own, err := e.ownKeys()
	if err != nil {
		return nil, err
	}
	return secretbox.New(append(e.sealing(), own...)...)
}

// ownBox is mediaBox, which seals by the product's own key.
func (e environment) ownBox() (*secretbox.Box, error) {
	own, err := e.ownKeys()
	if err != nil {
		return nil, err
	}
	return secretbox.New(append(own, e.sealing()...)...)
}

// productSettings are the secrets of one product, as variables of its process.
func (e environment) productSettings(product string) (map[string]string, error) {
	s, err := e.identities()
	if err != nil {
		return nil, err
	}
	var list []string
	for _, secret := range s.platform {
		list = append(list, product+":"+hex.EncodeToString(edge.ProductSecret(secret, product)))
	}
	if len(list) == 0 {
		return nil, errors.New("SLUICE_IDENTITY_SECRETS has no secret of the platform: those of products are derived from it")
	}
	set := map[string]string{"SLUICE_IDENTITY_SECRETS": strings.Join(list, ",")}
	if product != mediaProduct || e.get("SLUICE_SECRETS_KEY") == "" {
		return set, nil
	}
	own, err := e.ownKeys()
	set["SLUICE_SECRETS_KEY"] = ownPrefix + strings.Join(own, ","+ownPrefix)
	return set, err
}

// secretsCommand is `sluice secrets`.
func secretsCommand(env environment) *cobra.Command {
	c := &cobra.Command{Use: "secrets", Short: "derive the secrets of one product from the platform's"}
	c.AddCommand(&cobra.Command{
		Use: "product NAME", Short: "print SLUICE_IDENTITY_SECRETS of a product and, for media, SLUICE_SECRETS_KEY", Args: cobra.ExactArgs(1),
		Long: "Reads the platform's SLUICE_IDENTITY_SECRETS and, for media, SLUICE_SECRETS_KEY from the environment, and derives the product's own. A product with its own\n" +
			"secret can verify what edges sign for it, and cannot forge what they sign for other products. The worker uses those of media.",
		RunE: func(c *cobra.Command, args []string) error {
			if strings.ContainsAny(args[0], ";:,") {
				return fmt.Errorf("%q is no name of a product", args[0])
			}
			set, err := env.productSettings(args[0])
			if err != nil {
				return err
			}
			for _, name := range []string{"SLUICE_IDENTITY_SECRETS", "SLUICE_SECRETS_KEY"} {
				if set[name] == "" {
					continue
				}
				if _, err := fmt.Fprintf(c.OutOrStdout(), "%s=%s\n", name, set[name]); err != nil {
					return err
				}
			}
			return nil
		},
	})
	return c
}
