package descriptions

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

func pets(paths ...string) []byte {
	list := make([]string, len(paths))
	for i, p := range paths {
		list[i] = fmt.Sprintf(`%q:{"get":{"operationId":"op%d","responses":{"200":{"description":"d"}}}}`, p, i)
	}
	return []byte(`{"openapi":"3.0.0","info":{"title":"t","version":"1"},"paths":{` + strings.Join(list, ",") + `}}`)
}

var inForce = config.Document{
	Products: []config.Product{{Name: "pets"}, {Name: "shop"}},
	Routes:   []config.Route{{Name: "a", Path: "/pets/{id}", Product: "pets"}, {Name: "b", Path: "/shop/*", Product: "shop"}},
}

// A description is kept without what no route of the product leads to, is read again
// only when it has changed, and can be taken away.
func TestADescriptionIsKept(t *testing.T) {
	t.Parallel()
	ctx, store, now := t.Context(), Store{DB: pgtest.Pool(t)}, time.Now()
	current := &Current{Store: store, Now: func() time.Time { return now }}
	if list, number, err := current.Get(ctx); err != nil || len(list) > 0 || number != 0 && number != 1 {
		t.Fatal(list, number, err)
	}
	sum, err := store.Put(ctx, inForce, "pets", pets("/pets/{petId}", "/shop/x", "/nowhere"))
	if err != nil || sum.Operations != 1 || !sum.Changed {
		t.Fatal(sum, err)
	}
	if again, err := store.Put(ctx, inForce, "pets", pets("/pets/{petId}")); err != nil || again.Changed {
		t.Error("the same description again: ", again, err)
	}
	text, err := store.Get(ctx, "pets")
	if err != nil || strings.Contains(string(text), "/shop") || !strings.Contains(string(text), `"/pets/{petId}"`) {
		t.Errorf("%s %v", text, err)
	}
	now = now.Add(2 * time.Second)
	list, number, err := current.Get(ctx)
	if err != nil || len(list) != 1 || list[0].Product != "pets" {
		t.Fatal(list, err)
	}
	now = now.Add(2 * time.Second)
	if _, same, err := current.Get(ctx); err != nil || same != number {
		t.Error("nothing has changed: ", same, number, err)
	}
	if err := store.Delete(ctx, "pets"); err != nil {
		t.Fatal(err)
	}
	if err := store.Delete(ctx, "pets"); apierror.Code(err) != decision.NotFound {
		t.Error(err)
	}
	now = now.Add(2 * time.Second)
	if list, other, err := current.Get(ctx); err != nil || len(list) > 0 || other == number {
		t.Error(list, other, err)
	}
}

func TestDescriptionsThatAreRefused(t *testing.T) {
	t.Parallel()
	store := Store{DB: pgtest.Pool(t)}
	for want, c := range map[decision.Code]struct {
		product string
		text    []byte
	}{
		decision.NotFound:       {"nobody", pets("/pets/{id}")},
		decision.InvalidRequest: {"pets", []byte(`{"a":1}`)},
		decision.TooLarge:       {"pets", pets("/pets/{id}", "/pets/{"+strings.Repeat("x", MaxBytes)+"}")},
	} {
		if _, err := store.Put(t.Context(), inForce, c.product, c.text); apierror.Code(err) != want {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := store.Put(t.Context(), inForce, "pets", pets("/shop/x")); apierror.Code(err) != decision.InvalidRequest {
		t.Errorf("another product's operation: %v", err)
	}
}
