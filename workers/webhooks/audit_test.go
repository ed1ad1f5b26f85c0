package webhooks_test

import (
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/workers/webhooks/webhooktest"
)

// Every change of a subscription is in the audit log, without its secrets.
func TestChangesOfSubscriptionsAreAudited(t *testing.T) {
	t.Parallel()
	a := setup(t)
	fresh := strings.Repeat("another-secret-", 3)
	id := a.must(201, "POST", "/v1/webhooks", object{"url": "https://example.com/", "events": []string{"stream.*"}, "secret": webhooktest.Secret})["id"].(string)
	path := "/v1/webhooks/" + id
	a.must(200, "PATCH", path, object{"description": "another"})
	a.must(400, "PATCH", path, object{"description": strings.Repeat("a", 501)})
	a.must(200, "POST", path+"/rotate-secret", object{"secret": fresh, "overlap_seconds": 60})
	a.must(204, "DELETE", path, nil)
	a.must(404, "DELETE", path, nil)
	list, _, err := paging.Rows(audit.Read(t.Context(), a.Pool, audit.Filter{Target: id}, paging.Page{Limit: 100}))
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, e := range list {
		actions = append(actions, e.Action)
		text := string(e.Before) + string(e.After)
		if e.Account == nil || e.Actor == audit.System || strings.Contains(text, webhooktest.Secret) || strings.Contains(text, fresh) {
			t.Errorf("%+v %s", e, text)
		}
		if e.Action == "webhook.update" && (strings.Contains(string(e.Before), "another") || !strings.Contains(string(e.After), "another")) {
			t.Errorf("%s to %s", e.Before, e.After)
		}
	}
	if want := []string{"webhook.delete", "webhook.rotate", "webhook.update", "webhook.create"}; !slices.Equal(actions, want) {
		t.Errorf("%q, want %q", actions, want)
	}
}
