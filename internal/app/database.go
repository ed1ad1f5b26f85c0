package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/controlplane/gateway/certificates"
	"sluice.dev/sluice/media/legacy"
	"sluice.dev/sluice/migrations"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/postgres/dsn"
	"sluice.dev/sluice/platform/storage/reencrypt"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/webhooks"
)

// Seed is what `up` does before it starts its processes, for a platform whose
// processes are started by others.
func Seed(ctx context.Context, env Environment) error {
	for _, name := range []string{"SLUICE_DATABASE_URL", "SLUICE_SECRETS_KEY"} {
		if _, err := env.Require(name); err != nil {
			return err
		}
	}
	state, err := filepath.Abs(env.Get("SLUICE_STATE_DIR"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(state, 0o755); err != nil {
		return err
	}
	l := &localStack{env: env, state: state, set: map[string]string{}}
	if l.all, err = env.hasAll(); err != nil {
		return err
	}
	if err := l.placeEdges(); err != nil {
		return err
	}
	if err := l.migrate(ctx); err != nil {
		return err
	}
	return l.seed(ctx)
}

// DatabaseURL is where the database is: of several hosts the one that takes writes.
func (e Environment) DatabaseURL() (string, error) {
	return e.databaseAt("SLUICE_DATABASE_URL")
}

// DirectURL is where it is with no pooler between, for what lasts longer than a
// transaction: LISTEN, the locks of a session, migrations.
func (e Environment) DirectURL() (string, error) {
	if e.Get(directVariable) == "" {
		return e.DatabaseURL()
	}
	return e.databaseAt(directVariable)
}

// directVariable names the address of the database past a pooler.
const directVariable = "SLUICE_DATABASE_DIRECT_URL"

func (e Environment) databaseAt(variable string) (string, error) {
	text, err := e.Require(variable)
	if err != nil {
		return "", err
	}
	if text, err = dsn.Writable(text); err != nil {
		return "", fmt.Errorf("%s is %w", variable, err)
	}
	return text, nil
}

// MigrateUp brings the database to this version's schema, and makes the users of
// SLUICE_DATABASE_LOGINS.
func (e Environment) MigrateUp(ctx context.Context) error {
	logins, err := e.databaseLogins()
	if err != nil {
		return err
	}
	url, err := e.DirectURL()
	if err != nil {
		return err
	}
	if err := migrations.Up(ctx, url); err != nil || len(logins) == 0 {
		return err
	}
	if err := migrations.EnsureLogins(ctx, url, logins); err != nil {
		return fmt.Errorf("SLUICE_DATABASE_LOGINS: %w", err)
	}
	return nil
}

// databaseLogins reads the users. The error does not show a password.
func (e Environment) databaseLogins() (list []migrations.Login, err error) {
	for i, text := range e.List("SLUICE_DATABASE_LOGINS") {
		parts := strings.SplitN(text, ":", 3)
		role := migrations.Role("sluice_" + parts[0])
		if len(parts) != 3 || parts[1] == "" || parts[2] == "" || !slices.Contains(migrations.Roles, role) {
			return nil, fmt.Errorf("SLUICE_DATABASE_LOGINS: number %d is not PROCESS:USER:PASSWORD with controlplane, worker, runtime, media or backup as the process", i+1)
		}
		list = append(list, migrations.Login{Role: role, User: parts[1], Password: parts[2]})
	}
	return list, nil
}

// sealedColumns are all places where secrets are stored sealed; a test holds them
// against the schema.
func sealedColumns() []reencrypt.Column {
	return append(append(webhooks.Sealed(), certificates.Sealed()...), schedules.Sealed(), sessions.Sealed(), legacy.Sealed())
}

// reseal seals all of it anew: by the first key of SLUICE_SECRETS_KEY, and what
// the media product stores by its own.
func (e Environment) reseal(ctx context.Context, db postgres.DB) ([]reencrypt.Result, error) {
	box, err := e.box()
	if err != nil {
		return nil, err
	}
	own, err := e.mediaBox(true)
	if err != nil {
		return nil, err
	}
	list, err := reencrypt.All(ctx, db, box, slices.DeleteFunc(sealedColumns(), func(c reencrypt.Column) bool { return c.Table == legacy.Sealed().Table }))
	if err != nil {
		return list, err
	}
	more, err := reencrypt.All(ctx, db, own, []reencrypt.Column{legacy.Sealed()})
	return append(list, more...), err
}

// Reseal is reseal of the platform's database.
func (e Environment) Reseal(ctx context.Context) ([]reencrypt.Result, error) {
	pool, err := e.database(ctx, "sluice reseal", 2)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	return e.reseal(ctx, pool)
}

// ReplaceSigningKey has another key sign session tokens.
func (e Environment) ReplaceSigningKey(ctx context.Context) error {
	pool, err := e.database(ctx, "sluice replace-key", 2)
	if err != nil {
		return err
	}
	defer pool.Close()
	s, err := e.sessions(pool)
	if err != nil {
		return err
	}
	return s.Keyring.Replace(ctx)
}
