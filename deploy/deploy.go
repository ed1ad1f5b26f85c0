// Package deploy holds what a fresh installation starts with.
package deploy

import _ "embed"

// Document is the default configuration, as YAML: see docs/config.md. It counts
// until somebody applies another.
//
//go:embed sluice.yaml
var Document []byte

// Gateway is what a platform with the profile gateway serves of its own, as YAML:
// see docs/profiles.md.
//
//go:embed gateway.yaml
var Gateway []byte
