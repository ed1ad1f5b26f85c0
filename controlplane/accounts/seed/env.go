package seed

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Addresses are the URLs of a stack, without trailing slashes.
type Addresses struct {
	Gateway, Admin string
	Runtime        string   // empty: there is none
	Database       string   // with its password
	EnvoyAdmin     []string // one per edge
	// Extra are further variables, in their order.
	Extra []Variable
}

// Variable is one line of dev.env.
type Variable struct{ Name, Value string }

// Env renders dev.env: lines NAME=value that a shell can read. It holds secrets:
// the caller must write it with mode 0600.
func Env(r Result, a Addresses) ([]byte, error) {
	lines := []Variable{
		{"SLUICE_GATEWAY_URL", a.Gateway}, {"SLUICE_RUNTIME_URL", a.Runtime}, {"SLUICE_AUTH_URL", a.Gateway}, {"SLUICE_ADMIN_URL", a.Admin},
		{"SLUICE_ACCOUNT_ID", r.Account}, {"SLUICE_API_KEY", r.APIKey}, {"SLUICE_ADMIN_KEY", r.AdminKey},
		{"SLUICE_SESSION_TOKEN", r.SessionToken}, {"SLUICE_USER_EMAIL", r.Email}, {"SLUICE_USER_PASSWORD", r.Password},
		{"SLUICE_DATABASE_URL", a.Database}, {"SLUICE_ENVOY_ADMIN_URLS", strings.Join(a.EnvoyAdmin, ",")},
	}
	var b strings.Builder
	b.WriteString("# Written by `make up`. Holds secrets of this local stack.\n")
	for _, v := range append(lines, a.Extra...) {
		if v.Name == "SLUICE_RUNTIME_URL" && v.Value == "" {
			continue // there is no runtime
		}
		if strings.ContainsAny(v.Value, "\n\r'\x00") {
			return nil, fmt.Errorf("the value of %s cannot stand in an environment file", v.Name)
		}
		b.WriteString(v.Name + "=" + quote(v.Value) + "\n")
	}
	return []byte(b.String()), nil
}

// quote puts quotes around what a shell would take apart.
func quote(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@,=?%+*") == "" {
		return s
	}
	return "'" + s + "'"
}

// maxEnv bounds what ParseEnv reads, in bytes.
const maxEnv = 1 << 20

// ParseEnv reads what Env wrote: comments, empty lines and NAME=value, where
// the value may stand in single quotes.
//
// It takes time linear in what it reads, and memory of at most 16 bytes for each
// byte.
func ParseEnv(r io.Reader) (map[string]string, error) {
	vars := map[string]string{}
	lines := bufio.NewScanner(io.LimitReader(r, maxEnv))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("line %d is not NAME=value", n)
		}
		if len(value) >= 2 && value[0] == '\'' && value[len(value)-1] == '\'' {
			value = value[1 : len(value)-1]
		}
		vars[name] = value
	}
	return vars, lines.Err()
}
