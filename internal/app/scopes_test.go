package app

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/accounts/oauth/page"
	"sluice.dev/sluice/controlplane/gateway/config"
)

var updateScopes = flag.Bool("update-scopes", false, "write the table of scopes into docs/keys.md")

// What may be granted is what the document lists. Each of it opens a route, each scope that a
// route asks for can be granted, and the documentation shows just these.
func TestScopesOpenRoutesAndAreDocumented(t *testing.T) {
	t.Parallel()
	d, err := config.Default()
	if err != nil {
		t.Fatal(err)
	}
	opens := map[string][]string{}
	for _, r := range d.Routes {
		if r.Scope == "" {
			continue
		}
		if !slices.Contains(d.Scopes, r.Scope) {
			t.Errorf("route %s asks for %s, which nobody can be granted", r.Name, r.Scope)
		}
		opens[r.Scope] = append(opens[r.Scope], "`"+root(r)+"`")
	}
	table := "| scope | lets its holder | opens |\n| --- | --- | --- |\n"
	for _, s := range slices.Sorted(slices.Values(d.Scopes)) {
		if len(opens[s]) == 0 {
			t.Errorf("%s opens nothing: a route must ask for it, or it must not be listed", s)
		}
		slices.Sort(opens[s])
		table += fmt.Sprintf("| `%s` | %s | %s |\n", s, lower(page.Describe(s)), strings.Join(slices.Compact(opens[s]), ", "))
	}
	const file, begin, end = "../../docs/keys.md", "<!-- scopes -->\n", "<!-- /scopes -->"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), begin)
	have, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatal("docs/keys.md has no table of scopes")
	}
	if *updateScopes {
		if err := os.WriteFile(file, []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have != table {
		t.Errorf("docs/keys.md has another table of scopes: go test ./internal/app -run Scopes -update-scopes\n%s", table)
	}
}

// root is the beginning of a route's path, with its listener unless that is the gateway's.
func root(r config.Route) string {
	parts := strings.Split(r.Path, "/")
	path := strings.Join(parts[:min(len(parts), 3)], "/")
	if r.Listener != "" && r.Listener != "gateway" {
		return r.Listener + " " + path
	}
	return path
}

func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }
