// Package owner reads whose rows a request may see, and hands it to handlers. It is all
// that the media product knows of the platform in front of it: the signed identity
// header.
package owner

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
)

// Owner is who owns rows, and the plan that bounds them.
type Owner struct {
	ID      string // the account or, for a paying agent without one, its credential
	Account string // empty for a paying agent: nobody can subscribe to its events
	Plan    string
}

// From returns the owner behind ctx. It fails with authentication_required when
// the caller names neither an account nor a credential.
func From(ctx context.Context) (Owner, error) {
	c, _ := identity.From(ctx)
	o := Owner{ID: c.Account, Account: c.Account, Plan: c.Plan}
	if o.ID == "" {
		o.ID = c.Key
	}
	if o.ID == "" {
		return Owner{}, &apierror.Error{Code: decision.AuthRequired}
	}
	return o, nil
}

// Handle is httpapi.Handle for f, which gets the owner too.
func Handle[In, Out any](a httpapi.Adapter, status int, f func(o Owner, r *http.Request, in In) (Out, error)) http.HandlerFunc {
	return HandleFor(a, status, func(r *http.Request) (Owner, error) { return From(r.Context()) }, f)
}

// HandleFor is httpapi.Handle for f, which also gets what find has found, such as the
// stream that the path names. An error of find is answered before the body is read.
func HandleFor[T, In, Out any](a httpapi.Adapter, status int, find func(r *http.Request) (T, error), f func(t T, r *http.Request, in In) (Out, error)) http.HandlerFunc {
	return a.Handle(func(w http.ResponseWriter, r *http.Request) error {
		t, err := find(r)
		if err != nil {
			return err
		}
		httpapi.Handle(a, status, func(r *http.Request, in In) (Out, error) { return f(t, r, in) })(w, r)
		return nil
	})
}

// Target is what a request is about: the row of this id, if the owner has it.
type Target struct {
	Owner Owner
	ID    string
}

// InPath returns a function that reads the target from {id} in the path. An id that
// ident.New does not give for prefix is not_found, without a query.
func InPath(prefix string) func(r *http.Request) (Target, error) {
	return func(r *http.Request) (Target, error) {
		o, err := From(r.Context())
		id := chi.URLParam(r, "id")
		if err == nil && !ident.Valid(prefix, id) {
			err = &apierror.Error{Code: decision.NotFound}
		}
		return Target{o, id}, err
	}
}
