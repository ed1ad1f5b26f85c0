// Package sluice holds the changelog, so that the binary can serve it.
package sluice

import _ "embed" // for Changelog

// Changelog is what users notice of each version, in Markdown.
//
//go:embed CHANGELOG.md
var Changelog []byte
