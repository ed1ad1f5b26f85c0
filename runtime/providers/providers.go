// Package providers reads which model providers a runtime has:
//
//	providers:
//	  - name: acme                    # owned_by in the list of models
//	    url: https://api.acme.example/v1
//	    key_from: ACME_KEY            # variable with the key; none: none, or that of a caller of a runtime that stands alone
//	    models: ["acme-*", "small"]   # none: every model that no other one names
//	    weight: 3                     # share among providers of the same model; 1
//	    one_limit: true               # it refuses max_tokens beside max_completion_tokens
//	  - name: inner
//	    url: https://runtime.example/v1
//	    forward_credentials: true     # it is behind an edge of ours: callers' own keys of the platform go on
package providers

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"sluice.dev/sluice/runtime/chat"
	"sluice.dev/sluice/runtime/chat/upstream"
)

// Limits of a document.
const (
	MaxBytes     = 256 << 10
	MaxProviders = 100
	maxModels    = 1000
	maxWeight    = 1000
)

// document is the file's form.
type document struct {
	Providers []provider `yaml:"providers"`
}

// provider is one entry; see the package's example.
type provider struct {
	Name     string   `yaml:"name"`
	URL      string   `yaml:"url"`
	KeyFrom  string   `yaml:"key_from"`
	Models   []string `yaml:"models"`
	Weight   int      `yaml:"weight"`
	OneLimit bool     `yaml:"one_limit"`
	Forward  bool     `yaml:"forward_credentials"`
}

// namePattern is what a provider's name looks like.
var namePattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$`)

// Parse reads a document, which the operator has written: at most MaxBytes, in
// memory of some hundred times its length. lookup finds the variables that hold keys: keys stand
// in no file. The error names every fault, and no key and no URL.
func Parse(text []byte, lookup func(string) (string, bool)) ([]chat.Target, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("the list of providers is larger than %d bytes", MaxBytes)
	}
	if deep(text) {
		return nil, errors.New("the list of providers is nested too deeply")
	}
	var doc document
	if err := yaml.UnmarshalWithOptions(text, &doc, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("the list of providers does not parse: %s", yaml.FormatError(err, false, false))
	}
	if n := len(doc.Providers); n == 0 || n > MaxProviders {
		return nil, fmt.Errorf("%d providers are listed: expected 1 to %d", n, MaxProviders)
	}
	var targets []chat.Target
	var faults []error
	// Names are what the list of models and the log show, so they must differ.
	taken := map[string]bool{}
	for i, p := range doc.Providers {
		t, err := p.target(lookup)
		if taken[p.Name] {
			err = errors.Join(err, errors.New("name is that of another provider"))
		}
		taken[p.Name] = true
		if err != nil {
			faults = append(faults, fmt.Errorf("providers[%d]: %s", i, strings.ReplaceAll(err.Error(), "\n", "; ")))
			continue
		}
		targets = append(targets, t)
	}
	return targets, errors.Join(faults...)
}

// deep reports whether a text may be nested deeper than any list of providers:
// what reading YAML costs grows with the square of that.
func deep(text []byte) bool {
	const most = 16
	depth, dashes, begins := 0, 0, true
	for _, c := range text {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '\n':
			dashes, begins = 0, true
			continue
		case '-', '?', ':':
			if begins {
				dashes++
			}
		}
		begins = begins && (c == ' ' || c == '-' || c == '?' || c == ':')
		if depth > most || dashes > most {
			return true
		}
	}
	return false
}

// target checks one provider and makes it.
func (p provider) target(lookup func(string) (string, bool)) (chat.Target, error) {
	var faults []error
	if !namePattern.MatchString(p.Name) {
		faults = append(faults, errors.New("name must be 1 to 64 letters, digits, dots, dashes or underscores"))
	}
	if p.Weight < 0 || p.Weight > maxWeight {
		faults = append(faults, fmt.Errorf("weight must be 1 to %d", maxWeight))
	}
	if len(p.Models) > maxModels {
		faults = append(faults, fmt.Errorf("models are more than %d", maxModels))
	}
	for _, m := range p.Models {
		if m == "" || strings.Contains(strings.TrimSuffix(m, "*"), "*") {
			faults = append(faults, fmt.Errorf("models: %q is neither a name nor the beginning of one with * behind it", m))
		}
	}
	key := ""
	if p.KeyFrom != "" {
		var ok bool
		if key, ok = lookup(p.KeyFrom); !ok || key == "" {
			faults = append(faults, fmt.Errorf("key_from: the variable %s is not set", p.KeyFrom))
		}
		if p.Forward {
			faults = append(faults, errors.New("forward_credentials and key_from exclude each other: one key goes to a provider"))
		}
	}
	made, err := upstream.New(upstream.Config{BaseURL: p.URL, Key: key, OneLimit: p.OneLimit, ForwardCredentials: p.Forward})
	if err != nil {
		faults = append(faults, fmt.Errorf("url: %w", err))
	}
	return chat.Target{Name: p.Name, Provider: made, Models: p.Models, Weight: p.Weight}, errors.Join(faults...)
}
