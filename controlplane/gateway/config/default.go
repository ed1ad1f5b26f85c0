package config

import (
	"sluice.dev/sluice/platform/apierror"
)

// Default is the document of a fresh installation of the profile platform.
func Default() (Document, error) { return DefaultOf(ProfilePlatform) }

// DefaultOf is the document of a fresh installation: what is built in, and nothing
// else.
func DefaultOf(profile string) (Document, error) {
	d, faults := Document{Include: []string{Builtin}}.Expand(profile)
	return d, apierror.Invalid(faults)
}
