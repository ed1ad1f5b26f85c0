package oauth

import (
	"context"
	"errors"
	"time"

	"sluice.dev/sluice/controlplane/accounts/oauth/rules"
	"sluice.dev/sluice/controlplane/accounts/scoperegistry"
	"sluice.dev/sluice/platform/storage/postgres"
)

// The application of a local stack, and where it is sent.
const (
	seedName     = "Local app"
	seedRedirect = "http://127.0.0.1:8765/callback"
)

// SeedApp returns an application of the account that may ask for every scope: the
// one that have names (SLUICE_OAUTH_CLIENT_ID, SLUICE_OAUTH_CLIENT_SECRET) if it
// still works, else a new one. As its redirect address is on a loopback literal,
// any other port there works too.
func SeedApp(ctx context.Context, db postgres.DB, account string, have map[string]string) (id, secret, redirect string, err error) {
	s := &Service{Config{DB: db, Now: time.Now}}
	_, offered, err := scoperegistry.LoadOffered(ctx, db)
	if err != nil {
		return "", "", "", err
	}
	shown := rules.Credentials{ID: have["SLUICE_OAUTH_CLIENT_ID"], Secret: have["SLUICE_OAUTH_CLIENT_SECRET"]}
	app, err := s.authenticate(ctx, shown)
	if err == nil && app.Account == account && app.RedirectURIs[0] == seedRedirect {
		if _, all := rules.Within(app.Scopes, offered.Plain()); all {
			return shown.ID, shown.Secret, seedRedirect, nil
		}
	}
	if _, refused := errors.AsType[*rules.Error](err); err != nil && !refused {
		return "", "", "", err
	}
	made, err := s.CreateApp(ctx, AppSpec{Account: account, Name: seedName, RedirectURIs: []string{seedRedirect}, Scopes: offered.Plain()})
	return made.ID, made.Secret, seedRedirect, err
}
