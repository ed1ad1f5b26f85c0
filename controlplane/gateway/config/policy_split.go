package config

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"sluice.dev/sluice/filters/policy"
)

// policiesOfVersions are the policies of routes that go to another version of their product, by
// those of the routes themselves. They ask the same of callers; the product is told
// who calls in its own name, and is counted as itself.
func policiesOfVersions(routes []Route, policies []policy.Route) (list []policy.Route) {
	for i, r := range routes {
		for _, product := range r.Versions() {
			v := policies[i]
			digest, method, _ := strings.Cut(v.Revision, " ")
			sum := sha256.Sum256([]byte(digest + " " + product))
			v.Revision = hex.EncodeToString(sum[:4])
			if method != "" {
				v.Revision += " " + method
			}
			v.Of, v.Product = v.Product, product
			list = append(list, v)
		}
	}
	return list
}
