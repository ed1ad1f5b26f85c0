package mcp

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/web/mcp/toolset"
)

// How clients choose, by a parameter of the address or a header. The headers are those of
// GitHub's server.
const (
	setsParameter = "toolsets"
	setsHeader    = "X-MCP-Toolsets"
	readParameter = "readonly"
	readHeader    = "X-MCP-Readonly"
)

// Names of sets that are none of the document's.
const (
	allSets   = "all"    // every tool, whoever asks
	searchSet = "search" // the tools that find and call the others
)

// choice is what a client has chosen, and who it is.
type choice struct {
	sets     []string // none: what fits
	readOnly bool
	caller   *identity.Caller // nil: nobody is known
}

// choiceKey is the context's key for a choice.
type choiceKey struct{}

// chosen reads a request's choice.
func (c Config) chosen(r *http.Request) choice {
	query := r.URL.Query()
	said := func(parameter, header string) string {
		if query.Has(parameter) {
			return query.Get(parameter)
		}
		return r.Header.Get(header)
	}
	var ch choice
	for name := range strings.SplitSeq(said(setsParameter, setsHeader), ",") {
		if name = strings.ToLower(strings.TrimSpace(name)); name != "" {
			ch.sets = append(ch.sets, name)
		}
	}
	read := said(readParameter, readHeader)
	ch.readOnly = read == "1" || strings.EqualFold(read, "true")
	if caller, err := c.Identity.Caller(r); err == nil {
		ch.caller = &caller
	}
	return ch
}

// choiceOf is the choice of the request that ctx belongs to.
func choiceOf(ctx context.Context) choice {
	ch, _ := ctx.Value(choiceKey{}).(choice)
	return ch
}

// keyPrefix opens the id of an API key.
const keyPrefix = "key_"

// reaches reports whether the route of t lets the caller in, as far as can be told. Who is
// not known may turn out to be anybody.
func (ch choice) reaches(t toolset.Tool) bool {
	if ch.caller == nil {
		return true
	}
	if strings.HasPrefix(ch.caller.Key, keyPrefix) && !slices.Contains(t.Route.Auth, "key") {
		return false
	}
	return ch.covers(t)
}

// covers reports whether the caller's scopes cover that of t.
func (ch choice) covers(t toolset.Tool) bool {
	return ch.caller == nil || t.Route.Scope == "" || scopes.Covers(ch.caller.Scopes, t.Route.Scope)
}

// has reports whether the client has chosen a set by its name.
func (ch choice) has(set string) bool { return slices.Contains(ch.sets, set) }

// takes reports whether t is among what the client has chosen.
func (ch choice) takes(t toolset.Tool) bool {
	if ch.readOnly && !t.ReadOnly() {
		return false
	}
	return len(ch.sets) == 0 || ch.has(allSets) || ch.has(t.Set())
}
