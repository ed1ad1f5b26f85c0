package webpage

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// shared are the style and the icon of every page with files of its own.
//
//go:embed app.css icon.svg
var shared embed.FS

// Style is the shared style, for pages without files of their own.
var Style = mustRead("app.css")

// mustRead returns an embedded file.
func mustRead(name string) string {
	b, err := shared.ReadFile(name)
	if err != nil {
		panic(err) // embedded above
	}
	return string(b)
}

// Files are what pages use, served under names with a digest in them, so that
// browsers may keep them forever.
type Files struct {
	prefix string
	byName map[string][]byte // by the name under which it is served
	names  map[string]string // that, by the name of the file
}

// NewFiles returns the shared style (app.css) and icon (icon.svg), and those files
// of from that match one of the patterns. prefix is the path under which they are
// served, with a slash at its end.
func NewFiles(prefix string, from fs.FS, patterns ...string) (*Files, error) {
	f := &Files{prefix: prefix, byName: map[string][]byte{}, names: map[string]string{}}
	if err := f.Add(shared, "*"); err != nil {
		return nil, err
	}
	for _, pattern := range patterns {
		if err := f.Add(from, pattern); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Add adds the files of from that match a pattern, before the first is served.
func (f *Files) Add(from fs.FS, pattern string) error {
	found, err := fs.Glob(from, pattern)
	if err != nil {
		return fmt.Errorf("find %s: %w", pattern, err)
	}
	for _, file := range found {
		b, err := fs.ReadFile(from, file)
		if err != nil {
			return fmt.Errorf("read a file of a page: %w", err)
		}
		f.Put(path.Base(file), b)
	}
	return nil
}

// Put adds a file that is made, before the first is served.
func (f *Files) Put(name string, content []byte) {
	sum, ext := sha256.Sum256(content), path.Ext(name)
	served := strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext
	f.names[name], f.byName[served] = served, content
}

// Path is where a file is served; the prefix alone for one that there is not.
func (f *Files) Path(name string) string { return f.prefix + f.names[name] }

// kinds are the types of the files, by the ends of their names.
var kinds = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// Serve answers with the file that chi's parameter name asks for. It returns
// not_found if there is none.
func (f *Files) Serve(w http.ResponseWriter, r *http.Request) error {
	name := chi.URLParam(r, "name")
	b, ok := f.byName[name]
	if !ok {
		return &apierror.Error{Code: decision.NotFound}
	}
	h := w.Header()
	h.Set("Content-Type", kinds[path.Ext(name)])
	h.Set("Content-Security-Policy", Allow{}.Policy())
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(b) // the browser is gone otherwise
	return nil
}
