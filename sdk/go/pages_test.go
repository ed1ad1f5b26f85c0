package sluice

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
)

func TestAllGoesThroughAllPages(t *testing.T) {
	t.Parallel()
	page := func(ids []string, next string) http.HandlerFunc {
		hooks := []map[string]any{}
		for _, id := range ids {
			hooks = append(hooks, map[string]any{"id": id})
		}
		b, _ := json.Marshal(map[string]any{"data": hooks, "pagination": map[string]any{"next_cursor": map[bool]any{true: next}[next != ""]}})
		return says(200, string(b))
	}
	c, s, _ := client(t, page([]string{"a", "b"}, "c 1"), page(nil, "c2"), page([]string{"d"}, ""))
	params := &ListWebhooksParams{Limit: 2, Offset: 5, Sort: "-created_at"}
	var ids []string
	for w, err := range c.AllWebhooks(t.Context(), params) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, w.ID)
	}
	var asked []string
	for _, r := range s.seen {
		asked = append(asked, r.URL.RawQuery)
	}
	if !slices.Equal(ids, []string{"a", "b", "d"}) ||
		!slices.Equal(asked, []string{"limit=2&offset=5&sort=-created_at", "cursor=c+1&limit=2&sort=-created_at", "cursor=c2&limit=2&sort=-created_at"}) {
		t.Error(ids, asked)
	}
	if params.Cursor != "" || params.Offset != 5 {
		t.Error("the parameters were changed")
	}
}

// Whoever leaves a list, or whose page fails, asks for no more.
func TestAListThatEndsEarly(t *testing.T) {
	t.Parallel()
	c, s, _ := client(t, says(200, `{"data":[{"id":"a"},{"id":"b"}],"pagination":{"next_cursor":"c"}}`), says(400, ""))
	for range c.AllWebhooks(t.Context(), nil) {
		break
	}
	if len(s.seen) != 1 {
		t.Error(len(s.seen))
	}
	var errs, entries int
	for _, err := range c.AllWebhooks(t.Context(), &ListWebhooksParams{Cursor: "x"}) {
		if err != nil {
			errs++
		} else {
			entries++
		}
	}
	if errs != 1 || entries != 0 {
		t.Error(errs, entries)
	}
}
