// Package page shows people what an OAuth 2.0 application asks of them: plain
// server-rendered HTML that works without script, with the keyboard alone, on a
// phone, in light and in dark.
package page

import (
	"embed"
	"html/template"
	"net/http"

	"sluice.dev/sluice/platform/http/webpage"
)

//go:embed *.html page.css
var files embed.FS

var (
	parsed = template.Must(template.New("").Funcs(template.FuncMap{"describe": Describe}).ParseFS(files, "*.html"))
	style  = read("page.css")
)

// read returns an embedded file.
func read(name string) string {
	b, err := files.ReadFile(name)
	if err != nil {
		panic(err) // embedded above
	}
	return string(b)
}

// Form is what every form carries.
type Form struct {
	Token   string // against forged forms
	Request string // the authorization request, as a query
}

// SignIn asks for e-mail address and password.
type SignIn struct {
	Form
	App     string // name
	Email   string // as it was typed before
	Problem string // of the attempt before; empty: none
}

// Consent asks whether an application may act for the person.
type Consent struct {
	Form
	App      string // name
	Email    string // who is signed in
	Account  string // name
	Scopes   []string
	Withheld []string // asked for, but not the person's to give
	Target   string   // where the answer goes, in short
	Scheme   string   // of the address where the answer goes
}

// Problem says why a request can go nowhere.
type Problem struct{ Title, Text, RequestID string }

// View is one of SignIn, Consent and Problem.
type View interface {
	name() string
	scheme() string
}

// The templates, and the schemes to which forms may lead in the end.

func (SignIn) name() string  { return "sign_in.html" }
func (Consent) name() string { return "consent.html" }
func (Problem) name() string { return "problem.html" }

func (SignIn) scheme() string    { return "" }
func (c Consent) scheme() string { return c.Scheme }
func (Problem) scheme() string   { return "" }

// policy lets a page have our style and forms to us. Browsers hold the redirect
// that follows a form to form-action too, so the scheme of the client's address is
// added ("": none).
func policy(scheme string) string {
	forms := "'self'"
	if scheme != "" {
		forms += " " + scheme + ":"
	}
	return webpage.Allow{Styles: []string{style}, Forms: forms}.Policy()
}

// Write answers with a page, which nothing on the way may keep and nobody may
// frame.
func Write(w http.ResponseWriter, status int, v View) error {
	data := struct {
		Style template.CSS
		View  View
	}{template.CSS(style), v} // ours, from a file of the binary
	// With no referrer at all, browsers send forms with the origin null.
	return webpage.Write(w, parsed, v.name(), data, webpage.Answer{Status: status, Policy: policy(v.scheme()), Referrer: "same-origin"})
}
