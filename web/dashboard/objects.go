package dashboard

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/requestlog"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/identity"
)

// oneOf is what one object of a kind is called.
var oneOf = map[string]string{"routes": "route", "products": "product", "plans": "plan", "classes": "class"}

// listLink is where the objects of a kind are listed: routes on the section's own page.
func listLink(kind string) string {
	if kind == "routes" {
		return "/routes"
	}
	return "/routes/" + kind
}

// objectLink is where an object is shown, below Root.
func objectLink(kind, name string) string { return "/routes/" + kind + "/" + url.PathEscape(name) }

// kindOf is the kind of object that r is about.
func kindOf(r *http.Request) (string, error) {
	kind := chi.URLParam(r, "kind")
	if oneOf[kind] == "" {
		return "", apierror.Errorf(decision.NotFound, "There is no such page.")
	}
	return kind, nil
}

// objectPage is the form of an object, with what publishing it would change.
type objectPage struct {
	Form    *form
	Version int64
	Link    string // to the page on which it is deleted; empty: there is nothing to delete
	Publish bool   // it can be published as it was shown
	Shown   bool   // Changes are those of what stands in the form
	Changes []config.Change
	Notes   []decision.Detail // what is wrong with others already
	Tried   *rehearsalPage
}

// objectForm is the form of the object that r is about, and the version that it was
// made from.
func (s *site) objectForm(r *http.Request, kind, name string) (f *form, now config.Version, err error) {
	if now, err = s.Documents.Store.Latest(r.Context()); err != nil {
		return nil, now, err
	}
	f = &form{Back: listLink(kind), Name: "All " + kind, Submit: "Show the difference"}
	object := map[string]any{}
	if name == "" {
		f.Action = "/routes/new/" + kind
		f.Fields = []field{{Name: "name", Label: "Name", Hint: "Lower-case letters, digits, . _ and -. It cannot be changed later.", Required: true, Max: 100}}
	} else {
		f.Action = objectLink(kind, name)
		found, ok := now.Document.Find(kind, name)
		if !ok {
			return nil, now, &apierror.Error{Code: decision.NotFound}
		}
		if object, err = members(found); err != nil {
			return nil, now, err
		}
		delete(object, "name")
	}
	f.Fields = append(f.Fields, objectInputs(kind, now.Document, !s.Alone, object)...)
	f.Fields = append(f.Fields, field{Name: "note", Label: "Note for the history", Max: 500})
	return f, now, nil
}

// askObject shows the form, for the version that is now the newest.
func (s *site) askObject(w http.ResponseWriter, r *http.Request, v viewer, kind, name string, p objectPage) error {
	title := "New " + oneOf[kind]
	if name != "" {
		title, p.Link = name, objectLink(kind, name)+"/delete"
	}
	p.Form.Hidden = append(p.Form.Hidden, choice{"version", strconv.FormatInt(p.Version, 10)})
	return s.show(w, r, v, "object", title, "/routes", p)
}

// newObject shows the form of a new object.
func (s *site) newObject(w http.ResponseWriter, r *http.Request, v viewer) error {
	return s.objectAsked(w, r, v, "")
}

// showObject shows the form of one that is there.
func (s *site) showObject(w http.ResponseWriter, r *http.Request, v viewer) error {
	return s.objectAsked(w, r, v, chi.URLParam(r, "name"))
}

func (s *site) objectAsked(w http.ResponseWriter, r *http.Request, v viewer, name string) error {
	kind, err := kindOf(r)
	if err != nil {
		return err
	}
	f, now, err := s.objectForm(r, kind, name)
	if err != nil {
		return err
	}
	return s.askObject(w, r, v, kind, name, objectPage{Form: f, Version: now.Number})
}

// createObject is the form of a new object.
func (s *site) createObject(w http.ResponseWriter, r *http.Request, v viewer) error {
	return s.objectSent(w, r, v, "")
}

// changeObject is the form of one that is there.
func (s *site) changeObject(w http.ResponseWriter, r *http.Request, v viewer) error {
	return s.objectSent(w, r, v, chi.URLParam(r, "name"))
}

// objectSent shows what a form would change, tries it on the requests of the last hour, or
// publishes it. It publishes only what was shown: the same object, against the same version.
// Whoever comes second is shown the difference from what the first has published.
func (s *site) objectSent(w http.ResponseWriter, r *http.Request, v viewer, name string) error {
	kind, err := kindOf(r)
	if err != nil {
		return err
	}
	f, now, err := s.objectForm(r, kind, name)
	if err != nil {
		return err
	}
	f.fill(r)
	raw, err := readObject(f, kind, now.Document, !s.Alone)
	if err != nil {
		return s.objectRefused(w, r, v, kind, name, objectPage{Form: f, Version: now.Number}, err)
	}
	against, err := strconv.ParseInt(r.PostForm.Get("version"), 10, 64)
	if err != nil {
		return apierror.Errorf(decision.InvalidRequest, "The form does not say which version it changes.")
	}
	e := config.ObjectEdit{Kind: kind, Name: name, Object: raw, New: name == "", IfMatch: against, Note: f.text("note")}
	if e.New {
		e.Name = f.text("name")
	}
	if e.Note == "" {
		e.Note = "dashboard: " + oneOf[kind] + " " + decision.Cut(e.Name, 100)
	}
	digest := shownDigest(e)
	if r.PostForm.Get("do") == "publish" && r.PostForm.Get("shown") == digest {
		caller, _ := identity.From(r.Context())
		made, err := s.Documents.PublishObject(r.Context(), caller.Key, e)
		if err != nil {
			return s.objectRefused(w, r, v, kind, name, objectPage{Form: f, Version: now.Number}, err)
		}
		return seeOther(w, r, fmt.Sprintf("%s/config/%d?done=published", Root, made.Version))
	}
	return s.objectShown(w, r, v, kind, name, f, now.Number, e, digest)
}

// shownDigest names what a page has shown, so that nothing else is published by it.
func shownDigest(e config.ObjectEdit) string {
	sum := sha256.Sum256([]byte(fmt.Sprintf("%s\n%s\n%d\n%s", e.Kind, e.Name, e.IfMatch, e.Object)))
	return hex.EncodeToString(sum[:12])
}

// objectShown shows what an edit would change, and what it would have done.
func (s *site) objectShown(w http.ResponseWriter, r *http.Request, v viewer, kind, name string, f *form, newest int64, e config.ObjectEdit, digest string) error {
	p := objectPage{Form: f, Version: newest}
	proposal, err := s.Documents.ProposeObject(r.Context(), e)
	if err != nil {
		return s.objectRefused(w, r, v, kind, name, p, err)
	}
	p.Shown, p.Version, p.Changes, p.Notes = true, proposal.Version, proposal.Changes, proposal.Warnings
	if len(p.Changes) > 0 {
		f.Hidden = append(f.Hidden, choice{"shown", digest})
		p.Publish = true
	}
	if r.PostForm.Get("do") == "rehearse" {
		report, err := s.Rehearse.Rehearse(r.Context(), proposal, requestlog.RecordsKept, examplesShown)
		if err != nil {
			return err
		}
		p.Tried = &rehearsalPage{Report: report, Parts: partsOf(report)}
	}
	return s.askObject(w, r, v, kind, name, p)
}

// objectRefused shows the form with its faults.
func (s *site) objectRefused(w http.ResponseWriter, r *http.Request, v viewer, kind, name string, p objectPage, err error) error {
	if !p.Form.refused(err) {
		return err
	}
	if apierror.Code(err) == decision.Precondition {
		p.Form.Problem += " Somebody has published another version since this page was loaded. What you typed is kept: look at the difference again before you publish it."
	}
	return s.askObject(w, r, v, kind, name, p)
}
