// Package docs holds the documentation, so that the binary can serve it.
package docs

import "embed"

// Files are the pages, in Markdown, and their pictures.
//
//go:embed *.md *.svg
var Files embed.FS
