// Package changes says what a new version of an API is for its callers: what it
// adds, what it removes and what it breaks.
package changes

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/oasdiff/oasdiff/checker"
	"github.com/oasdiff/oasdiff/diff"
	"github.com/oasdiff/oasdiff/load"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/decision"
)

// Kind is what a change is for a caller that keeps to the version before.
type Kind string

// The kinds, the worst first.
const (
	Breaks   Kind = "breaks"    // such a caller fails
	MayBreak Kind = "may break" // it fails if it relies on what was never promised
	Fine     Kind = "fine"      // it notices nothing
)

// Change is one change of an operation.
type Change struct {
	Kind      Kind
	Operation string // method and path
	Text      string // what is different, in a sentence
}

// max bounds the text of a change, in bytes.
const maxText = 300

// ErrSlow is that two descriptions took too long to compare.
var ErrSlow = errors.New("the two versions took too long to compare")

// Between returns what is different between two descriptions in OpenAPI 3.1, as
// document.Document.OpenAPI makes them. It fails when one cannot be read, and with
// ErrSlow when that takes longer than most: the library that compares follows every
// path through schemas, of which there can be very many where they refer to each
// other. What it has begun then it goes on with, so this is for commands.
func Between(before, after []byte, most time.Duration) ([]Change, error) {
	type result struct {
		list []Change
		err  error
	}
	done := make(chan result, 1)
	go func() {
		list, err := between(before, after)
		done <- result{list, err}
	}()
	select {
	case r := <-done:
		return r.list, r.err
	case <-time.After(most):
		return nil, ErrSlow
	}
}

func between(before, after []byte) (list []Change, err error) {
	defer func() { // whatever a document does to the library that compares: it is said, and nothing else is lost
		if p := recover(); p != nil {
			list, err = nil, fmt.Errorf("the two versions cannot be compared: %s", decision.Cut(fmt.Sprint(p), maxText))
		}
	}()
	a, err := read(before)
	if err != nil {
		return nil, fmt.Errorf("read the version before: %w", err)
	}
	b, err := read(after)
	if err != nil {
		return nil, fmt.Errorf("read the new version: %w", err)
	}
	d, sources, err := diff.GetWithOperationsSourcesMap(diff.NewConfig(), a, b)
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	words := checker.NewDefaultLocalizer()
	for _, c := range checker.CheckBackwardCompatibilityUntilLevel(checker.NewConfig(checker.GetAllChecks()), d, sources, checker.INFO) {
		list = append(list, Change{kinds[c.GetLevel()], strings.TrimSpace(c.GetOperation() + " " + c.GetPath()),
			decision.Cut(c.GetUncolorizedText(words), maxText)})
	}
	return sorted(list), nil
}

var kinds = map[checker.Level]Kind{checker.ERR: Breaks, checker.WARN: MayBreak, checker.INFO: Fine}

func read(text []byte) (*load.SpecInfo, error) {
	loader := openapi3.NewLoader() // follows no reference out of the text
	t, err := loader.LoadFromData(text)
	if err != nil {
		return nil, errors.New(decision.Cut(err.Error(), maxText))
	}
	once(t.Paths)
	return &load.SpecInfo{Spec: t, Version: t.Info.Version}, nil
}

// once leaves one of the operations whose paths differ by the names of variables
// alone: they are one to callers, and share a route.
func once(paths *openapi3.Paths) {
	seen := map[string]bool{}
	for _, path := range paths.InMatchingOrder() {
		item := paths.Value(path)
		for method := range item.Operations() {
			key := method + " " + variable.ReplaceAllString(path, "{}")
			if seen[key] {
				item.SetOperation(method, nil)
			}
			seen[key] = true
		}
	}
}

var variable = regexp.MustCompile(`\{[^{}]*\}`)

// Demands returns what is different in what the routes of a product ask of their
// callers: ways to get in, scopes, prices and the size of bodies. Routes that only
// one of the two has are in Between.
func Demands(before, after []config.Route, product string) (list []Change) {
	was := map[string]config.Route{}
	for _, r := range before {
		if r.Product == product {
			was[key(r)] = r
		}
	}
	for _, now := range after {
		old, ok := was[key(now)]
		if now.Product != product || !ok {
			continue
		}
		add := func(kind Kind, text string, args ...any) {
			list = append(list, Change{kind, strings.Join(now.Methods, ", ") + " " + now.Path, fmt.Sprintf(text, args...)})
		}
		for _, way := range ways(old) {
			if !slices.Contains(ways(now), way) && !slices.Contains(ways(now), "none") {
				add(Breaks, "does not accept %s any more", said[way])
			}
		}
		for _, way := range ways(now) {
			if !slices.Contains(ways(old), way) {
				add(Fine, "accepts %s", said[way])
			}
		}
		switch {
		case old.Scope == now.Scope:
		case now.Scope == "":
			add(Fine, "needs no scope any more, in place of %s", old.Scope)
		case old.Scope == "":
			add(Breaks, "needs the scope %s", now.Scope)
		default:
			add(Breaks, "needs the scope %s in place of %s", now.Scope, old.Scope)
		}
		if old.BodyLimit != now.BodyLimit {
			kind := Fine
			if now.BodyLimit != 0 && (old.BodyLimit == 0 || now.BodyLimit < old.BodyLimit) {
				kind = Breaks
			}
			add(kind, "takes bodies of at most %d bytes (0: the default), in place of %d", now.BodyLimit, old.BodyLimit)
		}
	}
	return sorted(list)
}

// said is what the ways in are called.
var said = map[string]string{"key": "API keys", "token": "access tokens", "session": "session tokens", "none": "anybody"}

// ways are those by which a route lets callers in.
func ways(r config.Route) []string {
	if len(r.Auth) == 0 {
		return []string{"key"}
	}
	return r.Auth
}

// key is what requests a route is for.
func key(r config.Route) string {
	p, err := config.ParsePath(r.Path)
	if err != nil {
		return r.Path
	}
	return strings.Join(r.Methods, ",") + " " + p.Regexp()
}

// sorted puts what breaks first.
func sorted(list []Change) []Change {
	rank := map[Kind]int{Breaks: 0, MayBreak: 1, Fine: 2}
	slices.SortStableFunc(list, func(a, b Change) int {
		return cmp.Or(rank[a.Kind]-rank[b.Kind], cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Text, b.Text))
	})
	return list
}
