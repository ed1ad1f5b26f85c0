// Package engines is the contract of engines: whatever does the work of a product that
// this program cannot do by itself, such as speech to text. An engine is built in, a
// process on this machine in the sandbox of ffmpeg, or an address of an API like
// OpenAI's. The section engines of the document says which, and how much may be asked
// of it; a [Product] keeps to that.
package engines

import (
	"cmp"
	"time"
)

// The products that have engines, as the section names them.
const (
	Transcribe = "transcribe"
	Voice      = "voice"
	Vision     = "vision"
)

// What Setting.Use may be.
const (
	Auto    = "auto"    // URL if there is one and it answers, else the built-in one
	Builtin = "builtin" // a process on this machine
	URL     = "url"     // an API like OpenAI's
	Off     = "off"     // none
)

// Settings are those of all products, by name. A product that is missing has the zero
// Setting.
type Settings map[string]Setting

// Setting is what the document says of one product's engine.
type Setting struct {
	Use     string        // Auto, Builtin, URL or Off; empty: Auto
	URL     string        // base of an API like OpenAI's, such as https://host/v1; empty: none
	KeyFrom string        // variable with its key, which begins with KeyPrefix; empty: no key
	Model   string        // that URL is asked for; empty: the product's default
	Timeout time.Duration // of one piece of work; 0: 2 min
	// MaxBytes bounds what a caller sends. 0: 64 MiB.
	MaxBytes int64
	// Concurrency is how much work runs at once in this process; an account has a
	// quarter of it, and at least one. 0: 2.
	Concurrency int
}

// KeyPrefix begins the names of variables that keys of engines may stand in, so that no
// document sends another secret of this process to an address that it names.
const KeyPrefix = "ENGINE_"

// or is s with the bounds of d where it says nothing.
func (s Setting) or(d Setting) Setting {
	s.Timeout, s.MaxBytes, s.Concurrency = cmp.Or(s.Timeout, d.Timeout), cmp.Or(s.MaxBytes, d.MaxBytes), cmp.Or(s.Concurrency, d.Concurrency)
	return s
}

// filled is s with the defaults where it says nothing.
func (s Setting) filled() Setting {
	s.Use = cmp.Or(s.Use, Auto)
	s.Timeout = cmp.Or(s.Timeout, 2*time.Minute)
	s.MaxBytes = cmp.Or(s.MaxBytes, 64<<20)
	s.Concurrency = cmp.Or(s.Concurrency, 2)
	return s
}
