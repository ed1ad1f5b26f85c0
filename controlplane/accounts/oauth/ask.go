package oauth

import (
	"context"
	"fmt"
	"net/url"

	"sluice.dev/sluice/controlplane/accounts/oauth/rules"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// ask is an authorization request together with the application that makes it.
type ask struct {
	raw     string // the query as it came
	app     App
	request rules.Request
}

// readAsk reads the query of an authorization request. bad is for the client, at
// request.Redirect; err, a *rules.Error if it is the request's fault, is for the
// person only.
func (s *Service) readAsk(ctx context.Context, raw string) (a ask, bad *rules.Error, err error) {
	if len(raw) > rules.MaxQuery || !rules.Printable(raw) {
		return a, nil, &rules.Error{Code: rules.InvalidRequest, Description: "The request is too long, or not properly encoded."}
	}
	form, fault := rules.ParseForm(raw)
	if fault != nil {
		return a, nil, fault
	}
	app, err := s.App(ctx, form.Get("client_id"))
	if apierror.Code(err) == decision.NotFound {
		return a, nil, &rules.Error{Code: rules.InvalidClient, Description: "The application is not known."}
	}
	if err != nil {
		return a, nil, err
	}
	client := rules.Client{PKCE: app.PKCE, RedirectURIs: app.RedirectURIs, Scopes: app.Scopes}
	if _, _, fault = rules.Redirect(form, client); fault != nil {
		return a, nil, fault
	}
	a = ask{raw: raw, app: app}
	a.request, bad = rules.Authorize(form, client)
	return a, bad, nil
}

// target is the redirect address in short, and its scheme.
func (a ask) target() (short, scheme string) {
	u, err := url.Parse(a.request.Redirect)
	if err != nil { // it was registered, so it parses
		return a.request.Redirect, ""
	}
	if u.Host == "" {
		return u.Scheme + ":", u.Scheme
	}
	return u.Host, u.Scheme
}

// person returns the e-mail address of a user and the name of the account.
func (s *Service) person(ctx context.Context, user string) (email, account string, err error) {
	err = s.config.DB.QueryRow(ctx, `SELECT u.email, a.name FROM users u JOIN accounts a ON a.id = u.account_id WHERE u.id = $1`, user).
		Scan(&email, &account)
	if err != nil {
		return "", "", fmt.Errorf("find person: %w", err)
	}
	return email, account, nil
}
