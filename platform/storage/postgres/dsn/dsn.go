// Package dsn changes the text by which programs find a database, in both forms that
// libpq and pgx read: a URL, which may name several hosts, and keywords with values.
// net/url does not do for it: there may be more than one host, each with its port or
// without. What a function is not asked to change stays as it was written, all hosts
// included. The text is the operator's; reading it takes time in proportion to its
// length. No error shows it, as it holds a password.
package dsn

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// errForm is the error of a text that is in neither form.
var errForm = errors.New("no address of PostgreSQL: expected postgres://user:password@host:port/name, with several hosts as host1:port1,host2:port2")

// parse reads the text as pgx does.
func parse(text string) (*pgx.ConnConfig, error) {
	c, err := pgx.ParseConfig(text)
	if err != nil {
		return nil, errForm // the cause would show the password
	}
	return c, nil
}

// Database is the name of the database.
func Database(text string) (string, error) {
	c, err := parse(text)
	if err != nil {
		return "", err
	}
	return c.Database, nil
}

// As is the same database as another user.
func As(text, user, password string) (string, error) {
	if _, err := parse(text); err != nil {
		return "", err
	}
	u, ok := split(text)
	if !ok {
		return keywords(text, "user", user, "password", password), nil
	}
	u.user = url.UserPassword(user, password).String() + "@"
	u.without("user", "password")
	return u.String(), nil
}

// On is another database of the same servers.
func On(text, database string) (string, error) {
	if _, err := parse(text); err != nil {
		return "", err
	}
	u, ok := split(text)
	if !ok {
		return keywords(text, "dbname", database), nil
	}
	u.path = "/" + url.PathEscape(database)
	u.without("dbname", "database")
	return u.String(), nil
}

// Writable is the same text, and where it names several hosts and does not say which
// of them it wants (target_session_attrs), the one that takes writes: every process
// writes, and a standby takes none.
func Writable(text string) (string, error) {
	c, err := parse(text)
	if err != nil {
		return "", err
	}
	if c.ValidateConnect != nil || !several(c) {
		return text, nil
	}
	u, ok := split(text)
	if !ok {
		return keywords(text, "target_session_attrs", "read-write"), nil
	}
	u.without("target_session_attrs")
	u.query = append(u.query, "target_session_attrs=read-write")
	return u.String(), nil
}

// several reports whether there is more than one server. A server stands there twice
// where it is tried with TLS and without.
func several(c *pgx.ConnConfig) bool {
	for _, f := range c.Fallbacks {
		if f.Host != c.Host || f.Port != c.Port {
			return true
		}
	}
	return false
}

// parts of a URL, as they are written.
type parts struct {
	scheme, user, hosts, path string // user ends in @, path begins with /; both may be empty
	query                     []string
}

// split takes a URL apart where pgx does; false: it is none.
func split(text string) (p parts, ok bool) {
	for _, p.scheme = range []string{"postgres://", "postgresql://"} {
		rest, is := strings.CutPrefix(text, p.scheme)
		if !is {
			continue
		}
		if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
			p.user, rest = rest[:i+1], rest[i+1:]
		}
		rest, query, _ := strings.Cut(rest, "?")
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			rest, p.path = rest[:i], rest[i:]
		}
		p.hosts = rest
		if query != "" {
			p.query = strings.Split(query, "&")
		}
		return p, true
	}
	return p, false
}

// without leaves parameters out.
func (p *parts) without(names ...string) {
	p.query = slices.DeleteFunc(p.query, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		name, err := url.PathUnescape(name)
		return err == nil && slices.Contains(names, name)
	})
}

func (p parts) String() string {
	text := p.scheme + p.user + p.hosts + p.path
	if len(p.query) > 0 {
		text += "?" + strings.Join(p.query, "&")
	}
	return text
}

// keywords adds names and values to the other form, in which the last of a name counts.
func keywords(text string, pairs ...string) string {
	quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	for i := 0; i < len(pairs); i += 2 {
		text += " " + pairs[i] + "='" + quote.Replace(pairs[i+1]) + "'"
	}
	return strings.TrimSpace(text)
}
