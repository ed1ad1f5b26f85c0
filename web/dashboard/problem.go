package dashboard

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/webpage"
)

// problem is the page that says what went wrong, and what to do.
type problem struct {
	Title, Text, Remedy, RequestID string
	Details                        []decision.Detail
	Back, BackName                 string // where to go on
}

// remedies are what people can do, where it is something else than a program can.
var remedies = map[decision.Code]string{
	decision.AuthRequired:   "Sign in and try again.",
	decision.ScopeMissing:   "Ask an owner of your account for a role with this permission, or sign in as another user.",
	decision.InvalidRequest: "Go back and correct it.",
	decision.NotFound:       "It may have been deleted, or it belongs to another account.",
	decision.Conflict:       "Go back and reload the page to see the current state.",
	decision.Precondition:   "It was changed in the meantime. Go back and reload the page to see the current state.",
	decision.RateLimited:    "Wait a moment and try again.",
	decision.Unavailable:    "The database did not answer. Try again in a moment; on the server, sluice status shows what is wrong. Edges keep serving.",
	decision.Internal:       "Try again. If the error persists, give the request id below to the operator of the platform, who can find it in the log.",
}

// problemOf tells people of an error. What is not meant for them is kept back.
func problemOf(r *http.Request, err error) (status int, p problem) {
	code := apierror.Code(err)
	info := decision.Lookup(code)
	if info.Status == 0 {
		info = decision.Lookup(decision.Internal)
	}
	p = problem{Title: http.StatusText(info.Status), Text: info.Message, Remedy: cmp.Or(remedies[info.Code], info.Remedy), RequestID: httpapi.RequestID(r)}
	p.Back, p.BackName = backOf(r)
	if e, ok := errors.AsType[*apierror.Error](err); ok && info.Status < http.StatusInternalServerError {
		p.Text, p.Details = cmp.Or(e.Message, info.Message), e.Details
	}
	return info.Status, p
}

// backOf is where to go from a page that could not be shown, or a form that could
// not be done: to the page of the form, to the list, or to the beginning.
func backOf(r *http.Request) (link, name string) {
	for _, sec := range sections {
		if sec.Path == "/" || !strings.HasPrefix(r.URL.Path, sec.Link()+"/") {
			continue
		}
		link, name = sec.Link(), sec.Name
		if up := path.Dir(r.URL.Path); r.Method == http.MethodPost && up != link {
			link, name = up, "the page"
		}
		if account := r.Form.Get("account"); account != "" {
			link += "?" + url.Values{"account": {account}}.Encode()
		}
		return link, name
	}
	return Root, "the dashboard"
}

// page turns a handler's error into a page.
func (s *site) page(h httpapi.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		if err == nil {
			return
		}
		status, p := problemOf(r, err)
		if e, ok := errors.AsType[*apierror.Error](err); ok && e.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
		}
		if status >= http.StatusInternalServerError {
			s.Log.ErrorContext(r.Context(), "dashboard failed", "path", r.URL.Path, "request_id", p.RequestID, "cause", err)
		}
		if err := s.showProblem(w, r, status, p); err != nil {
			http.Error(w, "the page is broken", http.StatusInternalServerError)
		}
	}
}

// showProblem shows it with the menu to whoever is signed in, if that can be found out,
// and alone to anybody else, and where a look at the database may be what is missing.
func (s *site) showProblem(w http.ResponseWriter, r *http.Request, status int, p problem) error {
	a := webpage.Answer{Status: status, Policy: policy, Referrer: "same-origin"}
	alone := func() error { return webpage.Write(w, pages()["problem"], "problem", p, a) }
	if status == http.StatusTooManyRequests || status >= http.StatusInternalServerError {
		return alone()
	}
	v, ok, err := s.viewer(r)
	if !ok || err != nil {
		return alone()
	}
	of, err := s.chosen(r, v)
	if err != nil {
		of = v.Account
	}
	x := s.viewOf(w, r, v, of, p.Title, "")
	x.Page, x.Done, a.Edit = p, "", x.carry
	return webpage.Write(w, pages()["problem"], "layout", x, a)
}
