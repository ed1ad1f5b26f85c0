package config

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Engines says which engine does the work of each product that needs one.
type Engines struct {
	Transcribe *Engine `json:"transcribe,omitempty"` // speech to text, captions
	Voice      *Engine `json:"voice,omitempty"`      // text to speech
	Vision     *Engine `json:"vision,omitempty"`     // what is seen in pictures
}

// Engine is where an engine is and how much may be asked of it. Absent fields are as the
// media product has them.
type Engine struct {
	// Use is EngineAuto, EngineBuiltin, EngineURL or EngineOff. Empty: EngineAuto.
	Use string `json:"use,omitempty"`
	// URL is the base of an API like OpenAI's, such as https://host/v1.
	URL string `json:"url,omitempty"`
	// KeyFrom names the variable with the key of URL. The key itself stands in no document.
	KeyFrom string `json:"key_from,omitempty"`
	Model   string `json:"model,omitempty"` // that URL is asked for
	// Timeout bounds one piece of work.
	Timeout Duration `json:"timeout,omitempty"`
	// MaxBytes bounds what a caller sends.
	MaxBytes int64 `json:"max_bytes,omitempty"`
	// Concurrency is how much work runs at once in each process; an account has a
	// quarter of it, and at least one.
	Concurrency uint32 `json:"concurrency,omitempty"`
}

// What Engine.Use may be.
const (
	EngineAuto    = "auto"    // URL if there is one and it answers, else the built-in one
	EngineBuiltin = "builtin" // a process on this machine
	EngineURL     = "url"
	EngineOff     = "off" // the product answers 501
)

// Bounds of an engine.
const (
	maxEngineTimeout     = time.Hour
	maxEngineBytes       = 4 << 30
	maxEngineConcurrency = 1024
	maxEngineText        = 512
)

// keyFrom names a variable that engines' keys may stand in. The beginning keeps a
// document from sending other secrets of a process to an address that it names.
var keyFrom = regexp.MustCompile(`^ENGINE_[A-Z0-9_]{1,64}$`)

// byName are the engines that are there.
func (e *Engines) byName() map[string]**Engine {
	return map[string]**Engine{"transcribe": &e.Transcribe, "voice": &e.Voice, "vision": &e.Vision}
}

// engines checks the section. It takes time linear in it.
func (v *validator) engines(all *Engines) {
	if all == nil {
		return
	}
	list := all.byName()
	for _, name := range sorted(list) {
		if e := *list[name]; e != nil {
			v.engine("engines."+name, *e)
		}
	}
}

func (v *validator) engine(f string, e Engine) {
	v.oneOf(f+".use", e.Use, "", EngineAuto, EngineBuiltin, EngineURL, EngineOff)
	if e.URL == "" && e.Use == EngineURL {
		v.add(f+".url", "is missing", "the base of an API like OpenAI's, such as https://host/v1, or another use")
	}
	if e.URL != "" && !engineURL(e.URL) {
		v.add(f+".url", "is not the base of an API", fmt.Sprintf("https://host/v1 or http://host:port/v1, at most %d bytes, without a user, a query or a fragment; its key comes by key_from", maxEngineText))
	}
	if e.KeyFrom != "" && !keyFrom.MatchString(e.KeyFrom) {
		v.add(f+".key_from", "names no variable for keys of engines", "ENGINE_ and 1 to 64 of A-Z, 0-9 and underscore: other variables are sent to no engine")
	}
	if e.URL == "" && (e.KeyFrom != "" || e.Model != "") {
		v.add(f+".url", "is missing", "an address that key_from and model are for, or neither of them")
	}
	if len(e.Model) > maxEngineText || strings.ContainsFunc(e.Model, func(r rune) bool { return r < ' ' }) {
		v.add(f+".model", "is not the name of a model", fmt.Sprintf("at most %d bytes of text", maxEngineText))
	}
	v.duration(f+".timeout", e.Timeout)
	if e.Timeout.Or(time.Second) > maxEngineTimeout {
		v.add(f+".timeout", "is too long", "at most "+maxEngineTimeout.String())
	}
	if e.MaxBytes < 0 || e.MaxBytes > maxEngineBytes {
		v.add(f+".max_bytes", "is out of range", fmt.Sprintf("1 to %d", int64(maxEngineBytes)))
	}
	if e.Concurrency > maxEngineConcurrency {
		v.add(f+".concurrency", "is too large", fmt.Sprintf("at most %d", maxEngineConcurrency))
	}
}

// engineURL reports whether s is the base of an API. It never holds a secret.
func engineURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && len(s) <= maxEngineText && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// withoutFaulty turns engines off that have a fault, of which fields are the places
// below engines: nobody knows where their callers' bytes would go.
func (e *Engines) withoutFaulty(fields []string) *Engines {
	if e == nil || len(fields) == 0 {
		return e
	}
	usable := *e
	for name, engine := range usable.byName() {
		if slices.ContainsFunc(fields, func(f string) bool { return strings.HasPrefix(f, name+".") }) {
			*engine = &Engine{Use: EngineOff}
		}
	}
	return &usable
}
