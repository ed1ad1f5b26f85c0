package toolset_test

import (
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/web/mcp/toolset"
)

func anyTool(toolset.Tool) bool { return true }

// crowd are tools as an API has them.
var crowd = func() []toolset.Tool {
	var list []toolset.Tool
	for _, row := range []string{
		"createWebhook|Subscribe to events|POST|/v1/webhooks|webhooks:write|Deliveries are signed.",
		"listWebhooks|List the webhooks of the account|GET|/v1/webhooks|webhooks:read|",
		"rotateWebhookSecret|Replace a webhook's secret|POST|/v1/webhooks/{id}/rotate|webhooks:write|",
		"deleteWebhook|Delete a webhook|DELETE|/v1/webhooks/{id}|webhooks:write|",
		"createStream|Create a stream|POST|/v1/streams|streams:write|Live video.",
		"listRecordings|List recordings|GET|/v1/recordings|recordings:read|Of streams that have ended.",
		"listKeys|List the API keys|GET|/v1/auth/keys||",
		"getUsage|What was used|GET|/v1/billing/usage|billing:read|By day.",
		"updateSchedule|Change a schedule|PATCH|/v1/events/schedules/{id}|schedules:write|",
	} {
		f := strings.Split(row, "|")
		list = append(list, toolset.Tool{Name: f[0], Title: f[1], Method: f[2], Path: f[3], Route: toolset.Route{Scope: f[4]}, Description: f[1] + ".\n" + f[5]})
	}
	return list
}()

func TestToolsAreFoundByWords(t *testing.T) {
	t.Parallel()
	x := toolset.NewIndex(crowd)
	for query, want := range map[string]string{
		"create webhook":           "createWebhook",
		"subscribe to an event":    "createWebhook",
		"remove webhooks":          "deleteWebhook",
		"new stream":               "createStream",
		"live video":               "createStream",
		"edit a schedule":          "updateSchedule",
		"secret":                   "rotateWebhookSecret",
		"show keys":                "listKeys",
		"how much was used by day": "getUsage",
		"RECORDING":                "listRecordings",
		"deleteWebhook":            "deleteWebhook",
		" listkeys ":               "listKeys",
	} {
		if found := x.Find(query, anyTool); len(found) == 0 || found[0].Name != want {
			t.Errorf("%q: %v, want %s first", query, found, want)
		}
	}
	if found := x.Find("xylophone", anyTool); len(found) > 0 {
		t.Errorf("%v", found)
	}
	if found := x.Find("", anyTool); len(found) != len(crowd) {
		t.Errorf("%d of %d without words", len(found), len(crowd))
	}
	if found := x.Find("webhook", toolset.Tool.ReadOnly); len(found) != 1 || found[0].Name != "listWebhooks" {
		t.Errorf("%v", found)
	}
	if found := x.Find(strings.Repeat("webhook ", 10_000), anyTool); len(found) < 4 {
		t.Errorf("%v", found)
	}
}

func TestSets(t *testing.T) {
	t.Parallel()
	var got []string
	for _, tool := range crowd {
		got = append(got, tool.Set())
	}
	if want := strings.Fields("webhooks webhooks webhooks webhooks streams recordings keys billing schedules"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for path, want := range map[string]string{"/v1/{id}": "other", "/orders/{id}": "orders", "/v1/auth": "auth"} {
		if got := (toolset.Tool{Path: path}).Set(); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestWhichFieldsAnswersHave(t *testing.T) {
	t.Parallel()
	got := tools(t)["getThing"].Fields() // of a tree: three names deep
	if len(got) > 40 || !slices.Contains(got, "name") || !slices.Contains(got, "children.parent.name") || slices.Contains(got, "children") {
		t.Errorf("%v", got)
	}
	if got := tools(t)["deleteThing"].Fields(); len(got) > 0 {
		t.Errorf("%v", got)
	}
}
