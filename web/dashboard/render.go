package dashboard

import (
	"cmp"
	"embed"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"sync"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/webpage"
)

//go:embed templates/*.html
var templates embed.FS

//go:embed assets/*.js
var assets embed.FS

// policy lets pages use the dashboard's own files, call it and send forms to it,
// and nothing else.
var policy = webpage.Allow{Files: true, Images: "'self'", Connect: "'self'", Forms: "'self'"}.Policy()

// pages are the templates of every page, by name, each with the layout. They are read when
// the first page is shown: that is most of what the binary, which is every process and
// every command, would do at its start.
var pages = sync.OnceValue(parsePages)

// parsePages reads the templates: a file each, besides the shared ones.
func parsePages() map[string]*template.Template {
	shared := template.Must(template.New("").Funcs(functions).ParseFS(templates, "templates/_*.html"))
	list, err := templates.ReadDir("templates")
	if err != nil {
		panic(err) // embedded above
	}
	all := map[string]*template.Template{}
	for _, f := range list {
		if name, ok := strings.CutSuffix(f.Name(), ".html"); ok && !strings.HasPrefix(name, "_") {
			all[name] = template.Must(template.Must(shared.Clone()).ParseFS(templates, "templates/"+f.Name()))
		}
	}
	return all
}

// files are what pages use besides.
var files = readFiles()

func readFiles() *webpage.Files {
	f, err := webpage.NewFiles(Root+"/assets/", assets, "assets/*.js")
	if err != nil {
		panic(err) // embedded above
	}
	return f
}

// view is what every page is made from.
type view struct {
	Title    string
	Here     string // path of the section
	Viewer   viewer
	Menu     []menuGroup // that the viewer may see
	Token    string      // of forms
	Done     string      // what a form has just done; empty: nothing
	Account  accounts.Account
	Other    bool               // Account is not the viewer's own
	Choice   []accounts.Account // for operators, on pages about one account
	Many     bool               // there are more than Choice has
	Version  string
	DocsBase string // public address of the gateway; empty: not known
	Page     any    // what the page is about
	Policy   string // of the page; empty: that of most
}

// menuGroup is a part of the menu.
type menuGroup struct {
	Name     string // empty: it is the only one
	Sections []section
}

// menu is what v may see: for operators the platform, and the account a.
func (s *site) menu(v viewer, a accounts.Account) []menuGroup {
	if !v.Operator {
		return []menuGroup{{Sections: slices.DeleteFunc(s.sections(), func(sec section) bool { return !sec.visible(v) })}}
	}
	platform, account := menuGroup{Name: "Platform"}, menuGroup{Name: a.Name}
	for _, sec := range s.sections() {
		if sec.OfOne {
			account.Sections = append(account.Sections, sec)
		} else {
			platform.Sections = append(platform.Sections, sec)
		}
	}
	return []menuGroup{platform, account}
}

// done are the messages after a form, by what its redirect says.
var done = map[string]string{
	"revoked":         "The key is revoked. Edges refuse it from now on.",
	"resent":          "The delivery is queued. Reload in a moment to see the attempt.",
	"run":             "The schedule is running. Reload in a moment to see the execution.",
	"webhook-paused":  "The webhook is paused: deliveries wait until it is resumed.",
	"webhook-resumed": "The webhook is active. Waiting deliveries are being sent.",
	"saved":           "Saved.",
	"paused":          "The schedule is paused: it does not run until it is resumed.",
	"resumed":         "The schedule is active again. Runs that it missed while paused are not made up for.",
	"deleted":         "The schedule is deleted.",
	"removed":         "The person is removed, and signed out everywhere.",
	"limit-removed":   "The limit is removed: the plan's counts again.",
	"app-revoked":     "The application is revoked, and everything that people granted it.",
	"suspended":       "The account is suspended: edges refuse it from now on.",
	"account-resumed": "The account is let in again.",
	"plan-changed":    "The plan is changed, at every edge.",
	"method-removed":  "The payment method is removed.",
	"published":       "The change is published.",
	"webhook-deleted": "The webhook is deleted.", "schedule-created": "The schedule is created.",
	"recovering":  "Failed deliveries are being resent in the background.",
	"rolled-back": "The old version is current again, under a new version number.",
}

// show answers with the page of a name. Whatever it is about, the account that an
// operator has chosen stays chosen.
func (s *site) show(w http.ResponseWriter, r *http.Request, v viewer, name, title, here string, page any) error {
	a, err := s.chosen(r, v)
	if err != nil {
		return err
	}
	return s.write(w, r, v, a, name, title, here, page)
}

// write is show with the account that was chosen.
func (s *site) write(w http.ResponseWriter, r *http.Request, v viewer, a accounts.Account, name, title, here string, page any, more ...func(*view)) error {
	x := s.viewOf(w, r, v, a, title, here)
	x.Page = page
	for _, f := range more {
		f(&x)
	}
	return webpage.Write(w, pages()[name], "layout", x, webpage.Answer{Policy: cmp.Or(x.Policy, policy), Referrer: "same-origin", Edit: x.carry})
}

// viewOf is what the frame of every page says.
func (s *site) viewOf(w http.ResponseWriter, r *http.Request, v viewer, a accounts.Account, title, here string) view {
	return view{Title: title, Here: here, Viewer: v, Account: a, Other: a.ID != v.Account.ID, Menu: s.menu(v, a), Token: s.token(w, r, v.Session),
		Done: done[r.URL.Query().Get("done")], Version: s.Version, DocsBase: s.Requests.DocsBase}
}

// carry keeps a page to the account that was chosen.
func (x view) carry(page []byte) []byte {
	if !x.Other {
		return page
	}
	return carry(page, x.Account.ID)
}

// showOf is show for a page about one account.
func (s *site) showOf(w http.ResponseWriter, r *http.Request, v viewer, a accounts.Account, name, title, here string, page any) error {
	list, many, err := s.choice(r, v)
	if err != nil {
		return err
	}
	return s.write(w, r, v, a, name, title, here, page, func(x *view) { x.Choice, x.Many = list, many })
}

// notFound is what stands where nothing is.
func (s *site) notFound(http.ResponseWriter, *http.Request) error {
	return apierror.Errorf(decision.NotFound, "There is no such page.")
}
