package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/internal/app"
)

// listed is where values are listed, for completion: a path of the API of the call, and
// the field that each object has them in.
type listed struct{ path, field string }

// Where values that flags take are listed, by the admin API.
var (
	accountIDs = listed{"/admin/v1/accounts?limit=100", "id"}
	appIDs     = listed{"/admin/v1/apps?limit=100", "client_id"}
	scopeNames = listed{"/admin/v1/routes", "scope"}
	classNames = listed{"/admin/v1/classes", "name"}
	planNames  = listed{"/admin/v1/plans", "name"}
	keyIDs     = listed{"/admin/v1/accounts/{account}/keys?limit=100", "id"}
	versions   = listed{"/admin/v1/config/versions?limit=100", "version"}
)

// completion completes the values of the flag; nil: it does not know them.
func (f option) completion(env app.Environment, gateway bool) cobra.CompletionFunc {
	switch {
	case f.values != nil:
		return cobra.FixedCompletions(f.values, cobra.ShellCompDirectiveNoFileComp)
	case f.from.path != "":
		return f.from.complete(env, gateway)
	}
	return nil
}

// complete completes what is listed, in a shell. A platform that does not answer has
// none.
func (l listed) complete(env app.Environment, gateway bool) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if before := c.Root().PersistentPreRunE; before != nil && before(c, nil) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var page struct{ Data []map[string]any }
		answer, err := call{gateway: gateway}.do(c, env, request{path: l.path})
		if err != nil || json.Unmarshal(answer, &page) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var found []cobra.Completion
		seen := map[string]bool{}
		for _, object := range page.Data {
			v := object[l.field]
			text, description := fmt.Sprint(v), ""
			for _, by := range []string{"name", "title", "url", "email", "note"} {
				if s, ok := object[by].(string); ok && s != text && l.field != "scope" && description == "" {
					description = s
				}
			}
			if v != nil && v != "" && strings.HasPrefix(text, prefix) && !seen[text] {
				seen[text] = true
				if description != "" {
					text = cobra.CompletionWithDesc(text, description)
				}
				found = append(found, text)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// first completes the first argument with what is listed.
func (l listed) first(env app.Environment, gateway bool) cobra.CompletionFunc {
	complete := l.complete(env, gateway)
	return func(c *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(c, args, prefix)
	}
}

// completeNames completes the names of objects as the first argument.
func completeNames(env app.Environment, path string) cobra.CompletionFunc {
	return listed{path, "name"}.first(env, false)
}
