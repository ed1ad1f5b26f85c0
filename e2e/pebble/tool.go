// Package tool pins Pebble, Let's Encrypt's small authority for tests. It is a module of
// its own, so that what Pebble needs is no dependency of the product.
package tool

import (
	_ "github.com/letsencrypt/pebble/v2/cmd/pebble"              // the authority
	_ "github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv" // its DNS server
)
