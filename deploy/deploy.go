// Package deploy holds what a fresh installation starts with.
package deploy

import _ "embed"

// Document is the default configuration, as YAML: see docs/config.md. It counts
// until somebody applies another.
//
//go:embed sluice.yaml
var Document []byte
