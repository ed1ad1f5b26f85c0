package oauth

import (
	"context"
	"crypto/subtle"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts/oauth/rules"
	"sluice.dev/sluice/controlplane/accounts/scoperegistry"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres"
)

// App is a registered application. Its id is the client_id.
type App struct {
	ID           string     `json:"client_id"`
	Account      string     `json:"account"`       // that it belongs to; people of any account may use it
	Name         string     `json:"name"`          // people see it when they are asked
	Public       bool       `json:"public"`        // it has no secret
	PKCE         bool       `json:"pkce_required"` // not of one with a secret that was registered before all had to
	RedirectURIs []string   `json:"redirect_uris"`
	Scopes       []string   `json:"scopes"` // the most that it may ask for
	CreatedAt    time.Time  `json:"created_at"`
	RevokedAt    *time.Time `json:"revoked_at"`
}

// CreatedApp is a new application with its secret, which is shown this once.
type CreatedApp struct {
	App
	Secret string `json:"client_secret,omitempty"` // empty: a public client
}

// AppSpec is what an application is registered with.
type AppSpec struct {
	Account      string   `json:"account"`
	Name         string   `json:"name"`
	Public       bool     `json:"public"`
	RedirectURIs []string `json:"redirect_uris"`
	Scopes       []string `json:"scopes"`
}

// maxRedirects bounds the addresses of one application: each request is compared
// with all of them.
const maxRedirects = 20

// appColumns are read by scanApp. The hash of the secret never leaves the
// database except to be compared.
const appColumns = `id, account_id, name, secret_hash IS NULL, secret_hash IS NULL OR NOT without_pkce, redirect_uris, scopes, created_at, revoked_at`

// scanApp reads a row of appColumns.
func scanApp(row pgx.CollectableRow) (a App, err error) {
	err = row.Scan(&a.ID, &a.Account, &a.Name, &a.Public, &a.PKCE, &a.RedirectURIs, &a.Scopes, &a.CreatedAt, &a.RevokedAt)
	a.CreatedAt = a.CreatedAt.UTC()
	return a, err
}

// faults lists what is wrong with p.
func (p AppSpec) faults(offered scoperegistry.Registry) (list []decision.Detail) {
	fault := func(field, issue, expected string) {
		list = append(list, decision.Detail{Field: field, Issue: issue, Expected: expected})
	}
	if _, ok := keytable.ParseID(keytable.AccountPrefix, p.Account); !ok {
		fault("account", "does not exist", "the id of an account")
	}
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	if n := len([]rune(p.Name)); n == 0 || n > 100 || strings.ContainsFunc(p.Name, hidden) || strings.TrimSpace(p.Name) != p.Name {
		fault("name", "is not valid", "1 to 100 printable characters, no space at either end")
	}
	if len(p.RedirectURIs) == 0 || len(p.RedirectURIs) > maxRedirects {
		fault("redirect_uris", "is empty or too long", fmt.Sprintf("1 to %d addresses", maxRedirects))
	}
	for i, u := range p.RedirectURIs {
		if issue := rules.RedirectFault(u); issue != "" {
			fault(fmt.Sprintf("redirect_uris[%d]", i), issue, "https://, http:// on this machine, or a private scheme with a dot; no fragment")
		}
	}
	if len(p.Scopes) == 0 {
		fault("scopes", "is empty", "at least one scope")
	}
	for i, name := range p.Scopes {
		if _, ok := offered[name]; !ok || name == scopes.Admin {
			fault(fmt.Sprintf("scopes[%d]", i), "is not a scope for applications", "a known resource:action or resource:*")
		}
	}
	return list
}

// CreateApp registers an application. It fails with invalid_request, naming all
// that is wrong, also when the account does not exist.
func (s *Service) CreateApp(ctx context.Context, p AppSpec) (made CreatedApp, err error) {
	_, offered, err := scoperegistry.LoadOffered(ctx, s.config.DB)
	if err != nil {
		return made, err
	}
	if err := apierror.Invalid(p.faults(offered)); err != nil {
		return made, err
	}
	var hash []byte
	if !p.Public {
		made.Secret = newSecret(secretPrefix)
		hash = hashOf(made.Secret)
	}
	// Sorted, as scopes are everywhere that clients see them.
	list := slices.Compact(slices.Sorted(slices.Values(p.Scopes)))
	err = postgres.InTx(ctx, s.config.DB, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `INSERT INTO oauth_apps (id, account_id, name, secret_hash, redirect_uris, scopes, created_at, without_pkce)
			VALUES ($1, $2, $3, $4, $5, $6, $7, false) RETURNING `+appColumns,
			newID(AppPrefix), p.Account, p.Name, hash, p.RedirectURIs, list, s.now())
		made.App, err = pgx.CollectExactlyOneRow(rows, scanApp)
		if postgres.Constraint(err) == "oauth_apps_account_fkey" {
			return apierror.Invalid([]decision.Detail{{Field: "account", Issue: "does not exist", Expected: "the id of an account"}})
		}
		if err != nil {
			return fmt.Errorf("create app: %w", err)
		}
		return audit.RecordTx(ctx, tx, audit.Change{Account: p.Account, Action: "oauth_app.create", Target: made.ID, After: made.App})
	})
	return made, err
}

// AppList is how applications are listed: newest first, by name if asked for. They are few.
var AppList = paging.Table[App]{
	Columns: appColumns, From: "oauth_apps", Scan: scanApp,
	Sorts: []paging.Sort[App]{
		paging.Time("created_at", "created_at", func(a App) time.Time { return a.CreatedAt }),
		paging.Text("name", "name", func(a App) string { return a.Name }),
	},
	ID: "id", IDOf: func(a App) string { return a.ID },
	Created: "created_at", Name: "name", Param: "name",
}

// Page returns page p of the applications of an account ("": of all). Revoked ones stay
// in the list.
func (s *Service) Page(ctx context.Context, account string, p paging.Page) (paging.List[App], error) {
	return AppList.Read(ctx, s.config.DB, p, `$1 = '' OR account_id = $1`, account)
}

// App returns an application that is not revoked; not_found for any other.
func (s *Service) App(ctx context.Context, id string) (App, error) {
	if _, ok := keytable.ParseID(AppPrefix, id); !ok {
		return App{}, &apierror.Error{Code: decision.NotFound}
	}
	rows, _ := s.config.DB.Query(ctx, `SELECT `+appColumns+` FROM oauth_apps WHERE id = $1 AND revoked_at IS NULL`, id)
	a, err := pgx.CollectExactlyOneRow(rows, scanApp)
	return a, postgres.NotFound(err, "get app")
}

// RevokeApp ends an application and everything that people granted it. It fails
// with not_found when it has ended, or never was.
func (s *Service) RevokeApp(ctx context.Context, id string) error {
	if _, err := s.App(ctx, id); err != nil {
		return err
	}
	return postgres.InTx(ctx, s.config.DB, func(tx pgx.Tx) error {
		var account string
		err := tx.QueryRow(ctx, `UPDATE oauth_apps SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL RETURNING account_id`,
			id, s.now()).Scan(&account)
		if err != nil {
			return postgres.NotFound(err, "revoke app")
		}
		if err := audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "oauth_app.revoke", Target: id}); err != nil {
			return err
		}
		return endWhere(ctx, tx, `app_id = $1`, id, s.now())
	})
}

// authenticate returns the application that c stands for. It fails with
// invalid_client in the same way for an unknown one and for a wrong secret.
func (s *Service) authenticate(ctx context.Context, c rules.Credentials) (App, error) {
	// The id first: it is no secret, and bounds what the query below is asked.
	a, err := s.App(ctx, c.ID)
	var hash []byte
	if err == nil {
		err = s.config.DB.QueryRow(ctx, `SELECT secret_hash FROM oauth_apps WHERE id = $1`, a.ID).Scan(&hash)
		err = postgres.NotFound(err, "find app")
	}
	if err != nil && apierror.Code(err) != decision.NotFound {
		return App{}, err
	}
	// A public client shows its id alone; PKCE is what protects its codes. A hash
	// that is NULL never equals that of a secret.
	right := err == nil && (a.Public && c.Secret == "" || subtle.ConstantTimeCompare(hash, hashOf(c.Secret)) == 1)
	if !right {
		return App{}, &rules.Error{Code: rules.InvalidClient, Description: "The client is unknown, or its secret is wrong."}
	}
	return a, nil
}
