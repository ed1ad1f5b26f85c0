// Package discovery describes the platform to machines: the registry of its
// products, the manifest of its MCP server and its agent card. All of it is made
// from the configuration in force, so that it says what is so.
package discovery

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
	"sluice.dev/sluice/controlplane/gateway/config"
)

// Kinds of surfaces.
const (
	KindProduct  = "product"
	KindProtocol = "protocol"
)

// surface is a part of the platform that has a name of its own.
type surface struct {
	Name        string   `yaml:"name"`
	Kind        string   `yaml:"kind"` // empty: KindProduct
	Title       string   `yaml:"title"`
	Description string   `yaml:"description"`
	Paths       []string `yaml:"paths"`     // what is at or below them belongs to it
	Needs       string   `yaml:"needs"`     // what it needs to work; empty: nothing
	ServedBy    string   `yaml:"served_by"` // the surface whose products serve it, when it has no paths
}

//go:embed surfaces.yaml
var table []byte

// known are the surfaces of the table.
var known = sync.OnceValue(func() []surface {
	var list []surface
	if err := yaml.Unmarshal(table, &list); err != nil {
		panic(err) // a test reads the table
	}
	return list
})

// unnamed are routes that are listed as what they serve, not as surfaces.
var unnamed = []string{"/health", "/origin-health", "/v1/health", "/.well-known", "/openapi.json", "/docs", "/llms.txt", "/llms-full.txt", "/"}

// surfacesOf returns the table's surfaces, followed by those of routes that no
// row of it names, by name.
func surfacesOf(d config.Document) []surface {
	list := slices.Clone(known())
	for _, r := range d.Routes {
		if slices.ContainsFunc(unnamed, func(p string) bool { return r.Path == p || p != "/" && below(p, r.Path) }) ||
			slices.ContainsFunc(list, func(s surface) bool { return s.has(r) }) {
			continue
		}
		step, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(r.Path, "/v1"), "/"), "/")
		path := r.Path[:strings.Index(r.Path, step)+len(step)]
		if step == "" || strings.ContainsAny(step, "{*") {
			step, path = r.Name, r.Path
		}
		list = append(list, surface{Name: step, Title: step, Description: "What lies below " + path, Paths: []string{path}})
	}
	return list
}

// placeholderPaths returns the paths at which the placeholder answers for s: those that
// other surfaces have below them are theirs.
func (s surface) placeholderPaths() []string {
	if s.Needs == "" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Paths), func(p string) bool { return p[0] != '/' })
}

// has reports whether a route belongs to s, on whichever listener.
func (s surface) has(r config.Route) bool {
	return slices.ContainsFunc(s.Paths, func(p string) bool { return below(p, r.Path) })
}

// below reports whether path is prefix or lies below it. A prefix of */step
// stands for that step of any path.
func below(prefix, path string) bool {
	if step, ok := strings.CutPrefix(prefix, "*"); ok {
		return strings.HasSuffix(path, step) || strings.Contains(path, step+"/")
	}
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || rest[0] == '/')
}

// routes returns the routes of d that belong to s.
func (s surface) routes(d config.Document) []config.Route {
	var list []config.Route
	for _, r := range d.Routes {
		if s.has(r) {
			list = append(list, r)
		}
	}
	return list
}
