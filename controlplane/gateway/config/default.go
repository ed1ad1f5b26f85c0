package config

import (
	"fmt"

	"sluice.dev/sluice/deploy"
)

// Default is the document of a fresh installation.
func Default() (Document, error) {
	d, _, err := ParseYAML(deploy.Document)
	if err != nil {
		return d, fmt.Errorf("default configuration: %w", err)
	}
	return d, nil
}
