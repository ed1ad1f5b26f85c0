// Package webpage answers browsers with HTML that may do nothing but what its
// server says: a Content-Security-Policy that names inline scripts and styles by
// their digests, no frames around it unless they are wanted, no copies kept.
package webpage

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"
	"strconv"
	"strings"
)

// Allow says what a page may do. What is left out is forbidden.
type Allow struct {
	Scripts []string // sources of its inline scripts
	Styles  []string // sources of its inline styles
	Files   bool     // scripts and styles from files of its own origin
	Connect string   // where its scripts may call; a source list as CSP writes it
	Images  string   // beside data: addresses
	Media   string   // what it may play
	Forms   string   // where its forms may lead
	Frames  string   // what it may show in frames
	Framed  bool     // any page may show it in a frame
}

// Policy is the Content-Security-Policy that says so.
func (a Allow) Policy() string {
	scripts, styles := digests(a.Scripts), digests(a.Styles)
	if a.Files {
		scripts, styles = append(scripts, "'self'"), append(styles, "'self'")
	}
	parts := []string{"default-src 'none'", "base-uri 'none'", "img-src " + strings.TrimSpace("data: "+a.Images)}
	for _, d := range []struct{ name, sources string }{
		{"script-src", strings.Join(scripts, " ")}, {"style-src", strings.Join(styles, " ")}, {"connect-src", a.Connect}, {"media-src", a.Media}, {"frame-src", a.Frames},
	} {
		if d.sources != "" {
			parts = append(parts, d.name+" "+d.sources)
		}
	}
	if !a.Framed {
		parts = append(parts, "frame-ancestors 'none'")
	}
	return strings.Join(append(parts, "form-action "+cmp.Or(a.Forms, "'none'")), "; ")
}

// digests are sources' hashes as a policy writes them.
func digests(sources []string) []string {
	list := make([]string, len(sources))
	for i, s := range sources {
		sum := sha256.Sum256([]byte(s))
		list[i] = "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return list
}

// Answer is how a page goes out. The zero value is a page that nobody keeps.
type Answer struct {
	Status   int    // 0: 200
	Policy   string // of Allow; empty: the page may do nothing
	Referrer string // what links on it tell; empty: nothing
	Cache    string // who may keep it; empty: nobody
	// Edit is what is done to the finished page before it goes out; nil: nothing.
	Edit func([]byte) []byte
}

// Write makes the named template whole, since a half page has no error status,
// and answers with it. Its error is the template's; nothing has been written
// then.
func Write(w http.ResponseWriter, t *template.Template, name string, data any, a Answer) error {
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, name, data); err != nil {
		return err
	}
	page := b.Bytes()
	if a.Edit != nil {
		page = a.Edit(page)
	}
	policy := cmp.Or(a.Policy, Allow{}.Policy())
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	if strings.Contains(policy, "frame-ancestors 'none'") { // for browsers that do not know it
		h.Set("X-Frame-Options", "DENY")
	}
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", cmp.Or(a.Referrer, "no-referrer"))
	h.Set("Cache-Control", cmp.Or(a.Cache, "no-store"))
	h.Set("Content-Length", strconv.Itoa(len(page)))
	w.WriteHeader(cmp.Or(a.Status, http.StatusOK))
	_, _ = w.Write(page) // the person is gone otherwise
	return nil
}
