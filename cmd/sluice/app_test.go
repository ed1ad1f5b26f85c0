package main

import (
	"slices"
	"strings"
	"testing"
)

func TestAppCommandsCallTheAdminAPI(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args, answer, asked, shown string
	}{
		{"create --name Studio --public --redirect-uri https://a.example/cb --scope streams:read", `{"client_id":"app_1","client_secret":"slc_1"}`,
			`POST /admin/v1/apps {"account":"","name":"Studio","public":true,"redirect_uris":["https://a.example/cb"],"scopes":["streams:read"]}`, "slc_1"},
		{"list --account acct_1 --limit 5", `{"data":[{"client_id":"app_1"}]}`, "GET /admin/v1/apps?limit=5&offset=0&account=acct_1", "app_1"},
		{"revoke app_1", ``, "DELETE /admin/v1/apps/app_1", "app_1 is revoked"},
	} {
		api := newAdminAPI(t, 200, c.answer)
		out, err := executeApply(t, appCommand(api.environment()), strings.Fields(c.args)...)
		if err != nil || !slices.Equal(api.asked, []string{c.asked}) || !strings.Contains(out, c.shown) {
			t.Errorf("%s: %v, asked %q, shown %q", c.args, err, api.asked, out)
		}
	}
}
