package catalog

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/runtime/chat"
	"sluice.dev/sluice/runtime/chat/echo"
)

// fake is a provider that lists names.
type fake struct {
	echo.Provider
	names []string
	err   error
}

func (f fake) Models(context.Context, chat.Caller) ([]string, error) { return f.names, f.err }

func TestModels(t *testing.T) {
	t.Parallel()
	broken := fake{err: errors.New("broken")}
	for name, c := range map[string]struct {
		targets []chat.Target
		want    string
	}{
		"built in":         {[]chat.Target{{Name: "sluice", Provider: echo.Provider{}, Models: echo.Models()}}, `echo-1 by sluice, echo-1-slow by sluice`},
		"what it lists":    {[]chat.Target{{Name: "a", Provider: fake{names: []string{"z", "y"}}}}, `y by a, z by a`},
		"what fits":        {[]chat.Target{{Name: "a", Provider: fake{names: []string{"gpt-5", "gpt-4", "x"}}, Models: []string{"gpt-*", "m"}}}, `gpt-4 by a, gpt-5 by a, m by a`},
		"names only":       {[]chat.Target{{Name: "a", Provider: broken, Models: []string{"m"}}}, `m by a`},
		"twice":            {[]chat.Target{{Name: "a", Provider: fake{names: []string{"m"}}}, {Name: "b", Provider: fake{names: []string{"m"}}}}, `m by a`},
		"one does not say": {[]chat.Target{{Name: "a", Provider: broken}, {Name: "b", Provider: fake{names: []string{"m"}}}}, `m by b`},
		"cannot list":      {[]chat.Target{{Name: "a", Provider: echo.Provider{}}}, ``},
	} {
		list, err := Catalog{Targets: c.targets, Log: slog.New(slog.DiscardHandler)}.Models(t.Context(), chat.Caller{})
		var got []string
		for _, m := range list {
			got = append(got, m.ID+" by "+m.OwnedBy)
		}
		if err != nil || strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	c := Catalog{Targets: []chat.Target{{Name: "a", Provider: fake{err: errors.New("broken")}}}, Adapter: httpapi.Adapter{Log: slog.New(slog.DiscardHandler)}}
	rec := httptest.NewRecorder()
	if c.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil)); rec.Code != 500 {
		t.Errorf("when no provider answers: %d", rec.Code)
	}
	c.Targets[0].Provider = fake{}
	rec = httptest.NewRecorder()
	if c.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil)); rec.Body.String() != `{"object":"list","data":[]}`+"\n" {
		t.Errorf("without models: %s", rec.Body)
	}
}
