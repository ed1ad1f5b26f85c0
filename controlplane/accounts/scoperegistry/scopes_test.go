package scoperegistry

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// The scopes of contract 3.3.
var spec = strings.Fields(`streams:read streams:write analytics:read recordings:read recordings:write webhooks:read
	webhooks:write users:read users:write billing:read billing:write clips:write`)

func TestTheMigrationHasTheSpecsScopesAndTheirWildcards(t *testing.T) {
	t.Parallel()
	r, err := Load(t.Context(), pgtest.Pool(t))
	if err != nil {
		t.Fatal(err)
	}
	if missing := r.missing(append(spec, "schedules:read", "schedules:write")); len(missing) > 0 {
		t.Errorf("missing: %v", missing)
	}
	for name, bit := range r {
		if !scopes.Valid(name) || bit < 0 || bit >= Most {
			t.Errorf("%q has bit %d", name, bit)
		}
	}
	if missing := r.missing(r.Plain()); len(missing) > 0 {
		t.Errorf("scopes without a wildcard above them: %v", missing)
	}
	for _, n := range r.Plain() {
		if strings.Contains(n, "*") {
			t.Errorf("%q is called plain", n)
		}
	}
}

func TestEnsureKeepsBitsAndAddsWildcards(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	before, err := Load(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	after, err := Ensure(t.Context(), db, "lasers:fire", "streams:read")
	if err != nil {
		t.Fatal(err)
	}
	for name, bit := range before {
		if after[name] != bit {
			t.Errorf("%s moved from bit %d to %d", name, bit, after[name])
		}
	}
	if len(after) != len(before)+2 || after["lasers:*"] != len(before) || after["lasers:fire"] != len(before)+1 {
		t.Errorf("%v", after)
	}
	set, unknown := after.Bits([]string{"lasers:fire", "nothing:known"})
	if !set.Has(after["lasers:fire"]) || set.Has(after["lasers:*"]) || !slices.Equal(unknown, []string{"nothing:known"}) {
		t.Errorf("%v %v", set, unknown)
	}
}

func TestEnsureInParallelGivesEachABitOfItsOwn(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	g, ctx := errgroup.WithContext(t.Context())
	for i := range 8 {
		g.Go(func() error {
			_, err := Ensure(ctx, db, "shared:read", fmt.Sprintf("r%d:read", i))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestEnsureRefuses(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	if _, err := Ensure(t.Context(), db, "Bad", "streams:read", "a:b:c"); apierror.Code(err) != decision.InvalidRequest {
		t.Errorf("bad names: %v", err)
	}
	var many []string
	for i := range Most {
		many = append(many, fmt.Sprintf("many:a%d", i))
	}
	if _, err := Ensure(t.Context(), db, many...); apierror.Code(err) != decision.Conflict {
		t.Errorf("too many: %v", err)
	}
}
