// Package contexts keeps which platforms a person works with, each with its addresses
// and keys, in one file that only its owner may read.
package contexts

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/goccy/go-yaml"
)

// Context is a platform and who one is there. Addresses are http:// or https://.
type Context struct {
	AdminURL   string `yaml:"admin_url,omitempty"`
	AdminKey   string `yaml:"admin_key,omitempty"`
	GatewayURL string `yaml:"gateway_url,omitempty"`
	APIKey     string `yaml:"api_key,omitempty"`
}

// Local is the name of what is no context: the environment, and the local stack.
const Local = "local"

// File is all contexts.
type File struct {
	Current  string             `yaml:"current,omitempty"` // "": Local
	Contexts map[string]Context `yaml:"contexts,omitempty"`
}

// maxFile bounds the file, in bytes.
const maxFile = 1 << 20

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Read reads the file called name. One that is not there has no contexts.
func Read(name string) (f File, err error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil && info.Size() > maxFile {
		return f, fmt.Errorf("%s: is larger than %d bytes", name, maxFile)
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return f, err
	}
	if err := yaml.Unmarshal(raw, &f); err != nil {
		return f, fmt.Errorf("%s: is not a file of contexts: mend it, or remove it and run `sluice login` again", name) // what is in it has keys: it is not told
	}
	return f, nil
}

// Write replaces the file called name at once, readable by its owner alone.
func (f File) Write(name string) error {
	raw, err := yaml.Marshal(f)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	t, err := os.CreateTemp(filepath.Dir(name), ".contexts-*") // of mode 0600
	if err != nil {
		return err
	}
	_, err = t.Write(raw)
	if err = errors.Join(err, t.Sync(), t.Close()); err == nil {
		err = os.Rename(t.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(t.Name()))
	}
	return nil
}

// Names are those of the contexts, sorted.
func (f File) Names() []string { return slices.Sorted(maps.Keys(f.Contexts)) }

// Set adds a context, or replaces it, and makes it the current one.
func (f *File) Set(name string, c Context) error {
	if name == Local || !nameForm.MatchString(name) {
		return fmt.Errorf("%q is no name for a context: expected letters, digits, . _ and -, and not %s", name, Local)
	}
	if f.Contexts == nil {
		f.Contexts = map[string]Context{}
	}
	f.Contexts[name], f.Current = c, name
	return nil
}

// Get returns the context called name; of Local it has nothing.
func (f File) Get(name string) (Context, error) {
	c, ok := f.Contexts[name]
	if !ok && name != Local && name != "" {
		return c, fmt.Errorf("there is no context %q: `sluice context list` shows those there are, `sluice login %s` adds it", name, name)
	}
	return c, nil
}
