// Package tool pins the media engine. It is a module of its own, so that what the
// engine needs is no dependency of the product; build.sh builds it.
package tool

import _ "github.com/bluenviron/mediamtx" // the program that build.sh builds
