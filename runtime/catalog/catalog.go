// Package catalog lists the models that the runtime serves (contract 8.8).
package catalog

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/runtime/chat"
)

// Model is one model of the list.
type Model struct {
	ID      string `json:"id"`
	Object  string `json:"object"` // always "model"
	OwnedBy string `json:"owned_by"`
}

// List is the answer of GET /v1/models.
type List struct {
	Object string  `json:"object"` // always "list"
	Data   []Model `json:"data"`
}

// Lister is a provider that can say which models it has for a caller.
type Lister interface {
	Models(ctx context.Context, c chat.Caller) ([]string, error)
}

// patience is how long a provider may take to list its models.
const patience = 5 * time.Second

// Catalog lists the models of targets.
type Catalog struct {
	Targets []chat.Target
	Adapter httpapi.Adapter
	Log     *slog.Logger // nil: slog.Default
}

// ServeHTTP serves GET /v1/models.
func (c Catalog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.Adapter.Handle(func(w http.ResponseWriter, r *http.Request) error {
		list, err := c.Models(r.Context(), chat.CallerOf(r.Context()))
		if err == nil {
			httpapi.JSON(w, http.StatusOK, List{Object: "list", Data: list})
		}
		return err
	})(w, r)
}

// Models asks all providers at once that are for the caller. The list lacks the
// models of those that do not answer; it is an error only if none does.
func (c Catalog) Models(ctx context.Context, caller chat.Caller) ([]Model, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// One slot a provider: the order of the list does not depend on who is first.
	found := make([][]Model, len(c.Targets))
	failed := make([]error, len(c.Targets))
	var all sync.WaitGroup
	for i, t := range c.Targets {
		if _, err := t.Provider.Credential(caller); err == nil {
			all.Go(func() { found[i], failed[i] = models(ctx, t, caller) })
		}
	}
	all.Wait()
	list := slices.Concat(found...)
	for i, err := range failed {
		if err == nil {
			continue
		}
		if len(list) == 0 {
			return nil, err
		}
		c.log().WarnContext(ctx, "a provider does not list its models", "provider", c.Targets[i].Name, "cause", err)
	}
	slices.SortStableFunc(list, func(a, b Model) int { return strings.Compare(a.ID, b.ID) })
	list = slices.CompactFunc(list, func(a, b Model) bool { return a.ID == b.ID })
	if list == nil {
		list = []Model{}
	}
	return list, nil
}

// log is where failures of providers go.
func (c Catalog) log() *slog.Logger {
	if c.Log != nil {
		return c.Log
	}
	return slog.Default()
}

// models returns the names that t is configured with, and those of its provider
// that fit a pattern there.
func models(ctx context.Context, t chat.Target, caller chat.Caller) (list []Model, err error) {
	open := len(t.Models) == 0
	for _, m := range t.Models {
		if strings.HasSuffix(m, "*") {
			open = true
		} else {
			list = append(list, Model{m, "model", t.Name})
		}
	}
	lister, ok := t.Provider.(Lister)
	if !open || !ok {
		return list, nil
	}
	names, err := lister.Models(ctx, caller)
	for _, n := range names {
		if fits(t.Models, n) {
			list = append(list, Model{n, "model", t.Name})
		}
	}
	return list, err
}

// fits reports whether a target with patterns serves name; without any it
// serves all.
func fits(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
		begin, ok := strings.CutSuffix(p, "*")
		return ok && strings.HasPrefix(name, begin)
	})
}
