package accounts

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/controlplane/accounts/scoperegistry"
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// worker changes an account at random.
type worker struct {
	b     bundle
	rng   *rand.Rand
	keys  apikeys.Store
	mine  []string // ids of keys it made
	texts []string // of every key it made
}

var planNames, scopeNames = []string{"free", "pro", "local"}, []string{"streams:read", "clips:write", "webhooks:*", "billing:read"}

// step makes one change. What another worker did first is no failure.
func (w *worker) step(ctx context.Context) error {
	account := w.b.account.ID
	pick := func(list []string) string { return list[w.rng.IntN(len(list))] }
	var err error
	switch n := w.rng.IntN(10); {
	case n == 0:
		_, err = w.b.store.Update(ctx, account, Change{Plan: ptr(pick(planNames))})
	case n == 1:
		err = w.b.store.SetLimit(ctx, account, Limit{pick([]string{"default", "events"}), 1 + w.rng.IntN(100)})
	case n == 2:
		err = w.b.store.RemoveLimit(ctx, account, pick([]string{"default", "events"}))
	case n <= 5 || len(w.mine) == 0:
		err = w.create(ctx)
	case n == 6:
		err = w.keys.Revoke(ctx, account, pick(w.mine), []string{"*"})
	case n == 7:
		name := "renamed"
		_, err = w.keys.Change(ctx, account, pick(w.mine), apikeys.Change{Name: &name}, []string{"*"})
	default:
		var c apikeys.Created
		c, err = w.keys.Rotate(ctx, account, pick(w.mine), time.Duration(w.rng.IntN(3))*time.Minute, []string{"*"})
		w.made(c, err)
	}
	if apierror.Code(err) == decision.NotFound {
		return nil
	}
	return err
}

func (w *worker) create(ctx context.Context) error {
	end := time.Now().Add(time.Duration(1+w.rng.IntN(100)) * time.Hour)
	c, err := w.keys.Create(ctx, apikeys.Spec{Account: w.b.account.ID, Name: "k", ExpiresAt: &end, Creator: []string{"*"},
		Scopes: []string{scopeNames[w.rng.IntN(len(scopeNames))], scopeNames[w.rng.IntN(len(scopeNames))]}})
	w.made(c, err)
	return err
}

func (w *worker) made(c apikeys.Created, err error) {
	if err == nil {
		w.mine, w.texts = append(w.mine, c.ID), append(w.texts, c.Text)
	}
}

// Keys are made, rotated and revoked while the account's plan and limits change,
// by eight at once. When all is quiet, what edges hold is what the tables say.
func TestEdgesHoldWhatTheTablesSay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	workers := make([]*worker, 8)
	g, ctx := errgroup.WithContext(t.Context())
	for i := range workers {
		w := &worker{b: b, rng: rand.New(rand.NewPCG(3, uint64(i))), keys: apikeys.Store{DB: b.db}}
		workers[i] = w
		g.Go(func() error {
			for n := range 40 {
				if err := w.step(ctx); err != nil {
					return fmt.Errorf("worker %d, step %d: %w", i, n, err)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	live := 0
	for _, w := range workers {
		for _, text := range w.texts {
			live += b.compare(t, w.keys, text)
		}
	}
	if live < 20 {
		t.Errorf("only %d keys are left: the test says little", live)
	}
	b.compareLimits(t)
}

// compare returns 1 when the key with a text is live, and its record right.
func (b bundle) compare(t *testing.T, store apikeys.Store, text string) int {
	t.Helper()
	got, there := atEdge(t, b.db, keytable.TagOfKey(apikey.Hash(text)))
	h, err := store.Find(t.Context(), text)
	if apierror.Code(err) == decision.InvalidKey {
		if there {
			t.Errorf("a revoked key is at the edge: %+v", got)
		}
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	limits, err := b.store.Limits(t.Context(), b.account.ID)
	if err != nil {
		t.Fatal(err)
	}
	plans, err := LoadPlans(t.Context(), b.db)
	if err != nil {
		t.Fatal(err)
	}
	known, err := scoperegistry.Load(t.Context(), b.db)
	if err != nil {
		t.Fatal(err)
	}
	want := keytable.Record{Tag: keytable.TagOfKey(apikey.Hash(text)), Kind: keytable.KindKey, Plan: plans[h.Plan], Expires: uint32(h.ExpiresAt.Unix())}
	want.ID, _ = keytable.ParseID(keytable.KeyPrefix, h.ID)
	want.Account, _ = keytable.ParseID(keytable.AccountPrefix, h.Account)
	want.Scopes, _ = known.Bits(h.Scopes)
	if len(limits) > 0 {
		want.Flags = keytable.FlagLimits
	}
	if got != want {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
	return 1
}

func (b bundle) compareLimits(t *testing.T) {
	t.Helper()
	list, err := b.store.Limits(t.Context(), b.account.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{}
	for _, l := range list {
		want[l.Class] = l.PerMinute
	}
	number, _ := keytable.ParseID(keytable.AccountPrefix, b.account.ID)
	for _, class := range []string{"default", "events"} {
		got, there := atEdge(t, b.db, keytable.TagOfLimit(number, class))
		if there != (want[class] > 0) || int(got.Limit) != want[class] {
			t.Errorf("%s: %+v, want %d", class, got, want[class])
		}
	}
}
