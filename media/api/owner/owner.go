// Package owner tells whose rows a request may see. It is all that the media
// product knows of the platform in front of it: the signed identity header.
package owner

import (
	"context"
	"net/http"

	"sluice.dev/sluice/filters/decision"
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

// Body is From, and the request's JSON body, of at most limit bytes, as a T.
func Body[T any](w http.ResponseWriter, r *http.Request, limit int64) (o Owner, in T, err error) {
	if o, err = From(r.Context()); err == nil {
		err = httpapi.Decode(w, r, limit, &in)
	}
	return o, in, err
}
