package app

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/controlplane/accounts/oauth"
	"sluice.dev/sluice/controlplane/accounts/seed"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/migrations"
	"sluice.dev/sluice/platform/storage/postgres/dsn"
)

// generated are the secrets of a local stack, made once and kept in its folder.
var generated = []string{"SLUICE_IDENTITY_SECRETS", "SLUICE_SECRETS_KEY", "SLUICE_FEED_TOKEN"}

// loadSecrets reads the stack's secrets, and makes those that are missing. What
// the environment sets stays as it is.
func (l *localStack) loadSecrets() error {
	have, err := ReadEnvFile(l.file("secrets.env"))
	if err != nil {
		return err
	}
	var lines []string
	for _, name := range generated {
		if have[name] == "" {
			var b [32]byte
			rand.Read(b[:])
			have[name] = hex.EncodeToString(b[:])
		}
		lines = append(lines, name+"="+have[name])
		if l.env.Get(name) == "" {
			l.set[name] = have[name]
		}
	}
	return WriteSecret(l.file("secrets.env"), []byte(strings.Join(lines, "\n")+"\n"))
}

// ReadEnvFile reads a file such as dev.env; one that is not there is empty.
func ReadEnvFile(name string) (map[string]string, error) {
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	vars, err := seed.ParseEnv(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: delete the file to have it made anew", name, err)
	}
	return vars, nil
}

// WriteSecret replaces a file that only its owner may read, whole or not at all.
func WriteSecret(name string, b []byte) error {
	tmp := name + ".new"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, name)
}

func (l *localStack) migrate(ctx context.Context) error {
	if err := l.withPool(ctx, func(*pgxpool.Pool) error { return nil }); err != nil {
		return fmt.Errorf("%w: look at SLUICE_DATABASE_URL, or unset it for a private server", err)
	}
	return l.env.MigrateUp(ctx)
}

// assignSecrets gives each process what it needs of the secrets, and a user of its
// own for the database.
func (l *localStack) assignSecrets(ctx context.Context) error {
	products := map[string]string{"worker": mediaProduct, runtimeProcess: runtimeProduct, "media": mediaProduct, "engine": mediaProduct}
	if !l.all {
		products = nil // each of the processes that are left needs the secrets whole, or none
	}
	for process, product := range products {
		set, err := l.env.ProductSettings(product)
		if err != nil {
			return err
		}
		if process == "worker" {
			delete(set, "SLUICE_SECRETS_KEY") // which it needs whole: it rotates keys, and opens the secrets of webhooks
		}
		l.own[process] = set
	}
	return l.logins(ctx)
}

// logins makes a user of the database for each process, with a password that only
// this run knows. Where the user of the stack may not, all share that one.
func (l *localStack) logins(ctx context.Context) error {
	owner, err := l.env.DirectURL()
	if err != nil {
		return err
	}
	database, err := dsn.Database(owner)
	if err != nil {
		return err
	}
	addresses := []string{"SLUICE_DATABASE_URL", directVariable}
	roles := map[string]migrations.Role{
		"controlplane": migrations.ControlPlane, "worker": migrations.Worker, runtimeProcess: migrations.Runtime, "media": migrations.Media, "engine": migrations.Media,
	}
	if !l.all {
		maps.DeleteFunc(roles, func(_ string, role migrations.Role) bool {
			return role == migrations.Runtime || role == migrations.Media
		})
	}
	var logins []migrations.Login
	for process, role := range roles {
		login := migrations.Login{Role: role, User: loginName(process, database), Password: rand.Text()}
		logins = append(logins, login)
		if l.own[process] == nil {
			l.own[process] = map[string]string{}
		}
		for _, name := range addresses {
			if text := l.env.Get(name); text != "" {
				if l.own[process][name], err = dsn.As(text, login.User, login.Password); err != nil {
					return fmt.Errorf("%s is %w", name, err)
				}
			}
		}
	}
	err = migrations.EnsureLogins(ctx, owner, logins)
	if errors.Is(err, migrations.ErrMayNot) {
		slog.WarnContext(ctx, "every process signs in as the user of SLUICE_DATABASE_URL, and may do all that it may: that user may not make others", "cause", err)
		for process := range roles {
			for _, name := range addresses {
				delete(l.own[process], name)
			}
		}
		return nil
	}
	return err
}

// loginName is the user of a process for one database of a server.
func loginName(process, database string) string {
	const most = 63 // bytes, for PostgreSQL
	name := "sluice_" + process + "_" + database
	if len(name) > most {
		sum := sha256.Sum256([]byte(database))
		name = "sluice_" + process + "_" + hex.EncodeToString(sum[:16])
	}
	return name
}

// seed puts the default configuration into an empty database, and makes the
// local account.
func (l *localStack) seed(ctx context.Context) error {
	return l.withPool(ctx, func(pool *pgxpool.Pool) error {
		profile, err := l.env.Profile()
		if err != nil {
			return err
		}
		d, err := config.DefaultOf(profile)
		if err != nil {
			return err
		}
		store := config.Store{DB: pool}
		if err := store.Init(ctx, d); err != nil {
			return err
		}
		if l.document != nil {
			d = *l.document
			if _, err := store.Put(ctx, d, "sluice up", "sluice up --file", config.Any); err != nil {
				return err
			}
		}
		if _, err := config.EnsureNumbers(ctx, pool, d); err != nil {
			return err
		}
		if _, err := l.env.reseal(ctx, pool); err != nil { // what media has stored before it had a key of its own
			return err
		}
		return l.account(ctx, pool)
	})
}

// account makes the local account, or finds the one of an earlier run, and
// writes dev.env.
func (l *localStack) account(ctx context.Context, pool *pgxpool.Pool) error {
	have, err := ReadEnvFile(l.file("dev.env"))
	if err != nil {
		return err
	}
	sessions, err := l.env.sessions(pool)
	if err != nil {
		return err
	}
	r, err := seed.Local(ctx, pool, seed.Config{Have: have, Sessions: sessions})
	if err != nil {
		return err
	}
	app, secret, redirect, err := oauth.SeedApp(ctx, pool, r.Account, have)
	if err != nil {
		return err
	}
	a := seed.Addresses{
		Gateway:  l.env.publicURL(),
		Admin:    "http://" + l.env.Get("SLUICE_ADMIN_ADDR"),
		Database: l.env.Get("SLUICE_DATABASE_URL"),
		Extra: []seed.Variable{
			{Name: "SLUICE_OAUTH_CLIENT_ID", Value: app}, {Name: "SLUICE_OAUTH_CLIENT_SECRET", Value: secret}, {Name: "SLUICE_OAUTH_REDIRECT_URI", Value: redirect},
		},
	}
	if l.all {
		a.Runtime = l.env.scheme() + "://" + l.edges[0]["SLUICE_RUNTIME_ADDR"]
	} else {
		a.Extra = append(a.Extra, seed.Variable{Name: profileVariable, Value: config.ProfileGateway})
	}
	for _, e := range l.edges {
		a.EnvoyAdmin = append(a.EnvoyAdmin, "http://"+e["SLUICE_ENVOY_ADMIN_ADDR"])
	}
	text, err := seed.Env(r, a)
	if err != nil {
		return err
	}
	l.apiKey = r.APIKey
	return WriteSecret(l.file("dev.env"), text)
}

func (l *localStack) withPool(ctx context.Context, f func(*pgxpool.Pool) error) error {
	pool, err := l.env.database(ctx, "sluice up", 4)
	if err != nil {
		return err
	}
	defer pool.Close()
	return f(pool)
}

// serves returns nil once the edge answers keyed requests: its listeners, its
// policy, the keys and the product behind are then there.
func (l *localStack) serves(ctx context.Context, e map[string]string) error {
	if err := Healthy(ctx, "http://"+e["SLUICE_EDGE_METRICS_ADDR"]+"/health", "", http.StatusOK, http.DefaultClient); err != nil {
		return err
	}
	gateway := l.env.scheme() + "://" + e["SLUICE_GATEWAY_ADDR"]
	if l.all {
		return Healthy(ctx, gateway+"/v1/streams?limit=1", l.apiKey, http.StatusOK, l.probe)
	}
	status, err := answer(ctx, gateway+"/v1/auth/validate", l.apiKey, l.probe)
	if err == nil && (status == http.StatusUnauthorized || status >= http.StatusInternalServerError) { // others come of a document without that route
		return fmt.Errorf("the gateway answers %d", status)
	}
	return err
}

// Healthy returns nil when a GET of url gives the status.
func Healthy(ctx context.Context, url, key string, status int, client *http.Client) error {
	got, err := answer(ctx, url, key, client)
	if err == nil && got != status {
		return fmt.Errorf("%s answers %d", url, got)
	}
	return err
}

// answer is the status that a GET of url gives.
func answer(ctx context.Context, url, key string, client *http.Client) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	return res.StatusCode, nil
}
