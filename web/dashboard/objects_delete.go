package dashboard

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/identity"
)

// objectDeletion is the form that deletes an object, with what that would change.
func (s *site) objectDeletion(r *http.Request) (p objectPage, e config.ObjectEdit, err error) {
	kind, err := kindOf(r)
	if err != nil {
		return p, e, err
	}
	name := chi.URLParam(r, "name")
	now, err := s.Documents.Store.Latest(r.Context())
	if err != nil {
		return p, e, err
	}
	if _, ok := now.Document.Find(kind, name); !ok {
		return p, e, &apierror.Error{Code: decision.NotFound}
	}
	at := objectLink(kind, name)
	ask := danger{
		At: at + "/delete", Back: at, Place: name, Do: "Delete " + oneOf[kind], Name: name,
		Intro: "It is removed from the configuration, which is published to every edge as a new version.",
	}
	p = objectPage{Version: now.Number, Form: ask.form()}
	p.Form.Hidden = []choice{{"version", strconv.FormatInt(now.Number, 10)}}
	e = config.ObjectEdit{Kind: kind, Name: name, IfMatch: now.Number, Note: "dashboard: " + oneOf[kind] + " " + name + " deleted"}
	proposal, err := s.Documents.ProposeObject(r.Context(), e)
	if err != nil && !p.Form.refused(err) {
		return p, e, err
	}
	p.Shown, p.Changes = err == nil, proposal.Changes
	return p, e, nil
}

// deleteObjectPage asks whether to delete an object.
func (s *site) deleteObjectPage(w http.ResponseWriter, r *http.Request, v viewer) error {
	p, e, err := s.objectDeletion(r)
	if err != nil {
		return err
	}
	return s.show(w, r, v, "object", "Delete "+e.Name, "/routes", p)
}

// deleteObject deletes it, if nobody has published another version since it was asked.
func (s *site) deleteObject(w http.ResponseWriter, r *http.Request, v viewer) error {
	p, e, err := s.objectDeletion(r)
	if err != nil {
		return err
	}
	var made config.PutResult
	if err = confirmed(r, e.Name); err == nil {
		if e.IfMatch, err = strconv.ParseInt(r.PostForm.Get("version"), 10, 64); err != nil {
			return apierror.Errorf(decision.InvalidRequest, "The form does not say which version it changes.")
		}
		caller, _ := identity.From(r.Context())
		p.Form.Problem, p.Form.Faults = "", nil
		made, err = s.Documents.PublishObject(r.Context(), caller.Key, e)
	}
	switch {
	case err == nil:
		return seeOther(w, r, fmt.Sprintf("%s/config/%d?done=published", Root, made.Version))
	case !p.Form.refused(err):
		return err
	}
	return s.show(w, r, v, "object", "Delete "+e.Name, "/routes", p)
}
