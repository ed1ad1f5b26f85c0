package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/migrations"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// A user signs in with its password, also with a new one, and may do what its role
// may.
func TestLogins(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l := migrations.Login{Role: migrations.Runtime, User: "l_" + url[strings.LastIndex(url, "_")+1:strings.LastIndex(url, "?")]}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := conn.Exec(context.Background(), `DROP ROLE `+l.User)
		if err := errors.Join(err, conn.Close(context.Background())); err != nil {
			t.Error(err)
		}
	})
	for _, l.Password = range []string{"first", "second"} {
		if err := migrations.EnsureLogins(t.Context(), url, []migrations.Login{l}); err != nil {
			t.Fatal(err)
		}
		c := conn.Config().Copy()
		c.User, c.Password = l.User, l.Password
		theirs, err := pgx.ConnectConfig(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if refused(t, theirs, `SELECT 1 FROM token_usage`) || !refused(t, theirs, `SELECT 1 FROM api_keys`) {
			t.Error("it may not do what its role may")
		}
		own := fmt.Sprintf("postgres://%s:%s@%s:%d/%s?sslmode=disable", l.User, l.Password, c.Host, c.Port, c.Database)
		if err := migrations.EnsureLogins(t.Context(), own, []migrations.Login{{Role: migrations.Worker, User: l.User + "x"}}); !errors.Is(err, migrations.ErrMayNot) {
			t.Errorf("it makes users: %v", err)
		}
		theirs.Close(t.Context())
	}
}
