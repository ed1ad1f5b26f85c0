package migrations

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	pgxv5 "github.com/jackc/pgx/v5"
)

// Login is a user by which a process signs in.
type Login struct {
	Role     Role
	User     string
	Password string
}

// ErrMayNot says that a user may not make others.
var ErrMayNot = errors.New("this user of the database may not make others")

// EnsureLogins makes users, or gives those of these names these passwords, and has
// them do what their roles may, which Up has made. Passwords leave this process as
// SCRAM verifiers only. It returns ErrMayNot when the user in databaseURL may not.
func EnsureLogins(ctx context.Context, databaseURL string, logins []Login) error {
	conn, err := pgxv5.Connect(ctx, databaseURL)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, lockKey); err != nil {
		return fmt.Errorf("wait for other migrators: %w", err)
	}
	for _, l := range logins {
		if err := ensureLogin(ctx, conn, l); err != nil {
			if code(err) == insufficientPrivilege {
				return fmt.Errorf("user %s: %w: %s", l.User, ErrMayNot, err.Error())
			}
			return fmt.Errorf("user %s: %w", l.User, err)
		}
	}
	return nil
}

func ensureLogin(ctx context.Context, conn *pgxv5.Conn, l Login) error {
	verifier, err := scram(l.Password)
	if err != nil {
		return err
	}
	name := pgxv5.Identifier{l.User}.Sanitize()
	_, err = conn.Exec(ctx, `CREATE ROLE `+name+` LOGIN PASSWORD '`+verifier+`'`)
	if c := code(err); c == duplicateObject || c == uniqueViolation {
		_, err = conn.Exec(ctx, `ALTER ROLE `+name+` LOGIN PASSWORD '`+verifier+`'`)
	}
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `GRANT `+string(l.Role)+` TO `+name)
	return err
}

// scram is what PostgreSQL stores of a password (RFC 5803), so that it stands in no
// log of statements. Passwords are of ASCII, which SASLprep leaves as it is.
func scram(password string) (string, error) {
	const rounds = 4096 // PostgreSQL's own
	var salt [16]byte
	rand.Read(salt[:])
	salted, err := pbkdf2.Key(sha256.New, password, salt[:], rounds, sha256.Size)
	if err != nil {
		return "", err
	}
	stored := sha256.Sum256(mac(salted, "Client Key"))
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", rounds, b64(salt[:]), b64(stored[:]), b64(mac(salted, "Server Key"))), nil
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
