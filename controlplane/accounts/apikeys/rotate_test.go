package apikeys

import (
	"testing"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

func TestRotateLetsBothWork(t *testing.T) {
	t.Parallel()
	db, s := setup(t)
	old := s.mustCreate(t, account, "streams:read")
	next, err := s.Rotate(t.Context(), account, old.ID, time.Minute, []string{"streams:*"})
	if err != nil || next.ID == old.ID || next.Name != old.Name || next.Scopes[0] != "streams:read" {
		t.Fatalf("%+v %v", next, err)
	}
	if !next.ExpiresAt.Equal(now.Add(time.Hour)) {
		t.Errorf("the new key ends at %v", next.ExpiresAt)
	}
	for text, end := range map[string]time.Time{old.Text: now.Add(time.Minute), next.Text: now.Add(time.Hour)} {
		if r, ok := atEdge(t, db, text); !ok || int64(r.Expires) != end.Unix() {
			t.Errorf("%+v, want an end at %d", r, end.Unix())
		}
	}
}

func TestRotateNeverLengthensTheOldKey(t *testing.T) {
	t.Parallel()
	db, s := setup(t)
	old := s.mustCreate(t, account, "streams:read")
	if _, err := s.Rotate(t.Context(), account, old.ID, MaxOverlap, []string{"*"}); err != nil {
		t.Fatal(err)
	}
	if r, ok := atEdge(t, db, old.Text); !ok || int64(r.Expires) != now.Add(time.Hour).Unix() {
		t.Errorf("%+v", r)
	}
}

func TestRotateWithoutOverlapRevokes(t *testing.T) {
	t.Parallel()
	db, s := setup(t)
	old := s.mustCreate(t, account, "streams:read")
	if _, err := s.Rotate(t.Context(), account, old.ID, 0, []string{"*"}); err != nil {
		t.Fatal(err)
	}
	if _, ok := atEdge(t, db, old.Text); ok {
		t.Error("the old key is still at the edge")
	}
}

func TestAKeyWithoutEndHasASuccessorWithoutEnd(t *testing.T) {
	t.Parallel()
	_, s := setup(t)
	old, err := s.Create(t.Context(), Spec{Account: account, Name: "k", Scopes: []string{"*"}, Creator: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	next, err := s.Rotate(t.Context(), account, old.ID, time.Minute, []string{"*"})
	if err != nil || next.ExpiresAt != nil {
		t.Fatalf("%+v %v", next, err)
	}
	if k, err := s.Get(t.Context(), account, old.ID); err != nil || !k.ExpiresAt.Equal(now.Add(time.Minute)) {
		t.Fatalf("the old key ends at %v, %v", k.ExpiresAt, err)
	}
}

// One rule for every change: whoever makes it holds what the key may do.
func TestChangesNeedTheScopesOfTheKey(t *testing.T) {
	t.Parallel()
	_, s := setup(t)
	name := "new"
	for what, change := range map[string]func(id string, by []string) error{
		"revoke": func(id string, by []string) error { return s.Revoke(t.Context(), account, id, by) },
		"rename": func(id string, by []string) error {
			_, err := s.Change(t.Context(), account, id, Change{Name: &name}, by)
			return err
		},
		"limit": func(id string, by []string) error {
			_, err := s.Change(t.Context(), account, id, Change{Limited: true}, by)
			return err
		},
		"rotate": func(id string, by []string) error {
			_, err := s.Rotate(t.Context(), account, id, 0, by)
			return err
		},
	} {
		for _, c := range []struct {
			of, by []string
			may    bool
		}{
			{[]string{"*"}, []string{"streams:*", "users:write"}, false},
			{[]string{"streams:read", "users:write"}, []string{"streams:*"}, false},
			{[]string{"streams:read"}, []string{"streams:*"}, true},
			{[]string{"*"}, []string{"*"}, true},
			{[]string{"streams:read"}, nil, false},
		} {
			k := s.mustCreate(t, account, c.of...)
			err := change(k.ID, c.by)
			after, found := s.Get(t.Context(), account, k.ID)
			if c.may && err != nil || !c.may && (apierror.Code(err) != decision.ScopeMissing || found != nil || after.Name != k.Name) {
				t.Errorf("%s of %v by %v: %v; then %+v %v", what, c.of, c.by, err, after, found)
			}
		}
	}
}

func TestRotateRefuses(t *testing.T) {
	t.Parallel()
	_, s := setup(t)
	old := s.mustCreate(t, account, "*")
	if _, err := s.Rotate(t.Context(), account, old.ID, 0, []string{"streams:*"}); apierror.Code(err) != decision.ScopeMissing {
		t.Errorf("a narrow creator was handed a wide key: %v", err)
	}
	if _, err := s.Rotate(t.Context(), other, old.ID, 0, []string{"*"}); apierror.Code(err) != decision.NotFound {
		t.Errorf("another account rotated it: %v", err)
	}
}
