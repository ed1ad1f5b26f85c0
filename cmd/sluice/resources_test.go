package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/spf13/cobra"
	"sluice.dev/sluice/cmd/sluice/output"
	"sluice.dev/sluice/internal/app"
)

func TestResourcesCallTheirAPI(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(file, []byte("name: nightly\ntype: custom\nschedule: {type: recurring, cron: '0 3 * * *'}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"webhook list --limit 3": `GET /v1/webhooks?limit=3&offset=0`,
		"webhooks ls":            `GET /v1/webhooks?limit=50&offset=0`,
		"webhook create --url https://a --event a.*,b --secret 0123456789abcdef": `POST /v1/webhooks {"events":["a.*","b"],"secret":"0123456789abcdef","url":"https://a"}`,
		"webhook pause wh_1":                                       `PATCH /v1/webhooks/wh_1 {"status":"paused"}`,
		"webhook deliveries wh_1 --status failed":                  `GET /v1/webhooks/wh_1/deliveries?limit=50&status=failed`,
		"webhook delivery wh_1 dlv_1":                              `GET /v1/webhooks/wh_1/deliveries/dlv_1`,
		"webhook resend wh_1 dlv_1":                                `POST /v1/webhooks/wh_1/deliveries/dlv_1/resend`,
		"webhook rotate-secret wh_1 --secret s --overlap 1h":       `POST /v1/webhooks/wh_1/rotate-secret {"overlap_seconds":3600,"secret":"s"}`,
		"webhook rm wh_1":                                          `DELETE /v1/webhooks/wh_1`,
		"schedule create -f " + file + " --timezone UTC":           `POST /v1/events/schedules {"name":"nightly","schedule":{"cron":"0 3 * * *","timezone":"UTC","type":"recurring"},"type":"custom"}`,
		"schedule create --name a --type custom --cron *":          `POST /v1/events/schedules {"name":"a","schedule":{"cron":"*","type":"recurring"},"type":"custom"}`,
		"schedule create --name a --type custom --at T":            `POST /v1/events/schedules {"name":"a","schedule":{"executeAt":"T","type":"one_time"},"type":"custom"}`,
		"schedule update schedule_1 --cron x":                      `PATCH /v1/events/schedules/schedule_1 {"schedule":{"cron":"x"}}`,
		"schedule run schedule_1":                                  `POST /v1/events/schedules/schedule_1/trigger`,
		"schedule executions schedule_1":                           `GET /v1/events/schedules/schedule_1/executions?limit=50&offset=0`,
		"event list --type stream.*":                               `GET /v1/events?limit=50&type=stream.%2A`,
		"people list":                                              `GET /v1/users?limit=50&offset=0`,
		"user invite ann@example.com --role admin":                 `POST /v1/users {"email":"ann@example.com","role":"admin"}`,
		"user update user_1 --role member":                         `PATCH /v1/users/user_1 {"role":"member"}`,
		"stream create --title x":                                  `POST /v1/streams {"title":"x"}`,
		"stream stop strm_1":                                       `POST /v1/streams/strm_1/actions {"action":"stop"}`,
		"invoice list --account A --status open":                   `GET /admin/v1/accounts/A/invoices?limit=50&offset=0&status=open`,
		"invoice set-status inv_1 paid":                            `PATCH /admin/v1/invoices/inv_1 {"status":"paid"}`,
		"usage report --from 2026-01-01":                           `GET /v1/billing/usage?from=2026-01-01`,
		"usage series --group-by route":                            `GET /v1/billing/usage?limit=50&offset=0&granularity=day&group_by=route`,
		"audit --action key.revoke":                                `GET /admin/v1/audit?limit=50&offset=0&action=key.revoke`,
		"trigger stream.started --data {\"stream_id\":\"strm_1\"}": `POST /v1/webhooks/trigger {"data":{"stream_id":"strm_1"},"event":"stream.started"}`,
		"plan offer pro":                                           `PATCH /admin/v1/plans/pro {"self_serve":true}`,
		"route delete a --dry-run":                                 `DELETE /admin/v1/routes/a?dry_run=true`,
		"class apply -f " + file + " --note why":                   `PUT /admin/v1/classes/nightly?note=why {"name":"nightly","schedule":{"cron":"0 3 * * *","type":"recurring"},"type":"custom"}`,
	} {
		api := newAdminAPI(t, http.StatusOK, `{"data":[],"changes":[]}`)
		if _, err := runUse(t, api.environment(), strings.Fields(args)...); err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if got := api.asked[len(api.asked)-1]; got != want {
			t.Errorf("%s:\n got %s\nwant %s", args, got, want)
		}
	}
	for _, args := range []string{"webhook update wh_1", "stream create", "user update user_1", "schedule create", "route apply a"} {
		api := newAdminAPI(t, http.StatusOK, `{}`)
		if _, err := runUse(t, api.environment(), strings.Fields(args)...); err == nil || len(api.asked) > 0 {
			t.Errorf("%s: %v, asked %v", args, err, api.asked)
		}
	}
}

// A secret that was not given is made, and shown once.
func TestSecretsAreMade(t *testing.T) {
	t.Parallel()
	api := newAdminAPI(t, http.StatusCreated, `{"id":"wh_1","secret":"shown"}`)
	out, err := runUse(t, api.environment(), "webhook", "create", "--url", "https://a", "--event", "*")
	var body struct{ Secret string }
	if err != nil || json.Unmarshal([]byte(strings.TrimPrefix(api.asked[0], "POST /v1/webhooks ")), &body) != nil || len(body.Secret) != len("whsec_")+32 || !strings.Contains(out, "shown") {
		t.Errorf("%v %q\n%s", err, api.asked, out)
	}
}

// What is not found is named.
func TestWhatIsNotFoundIsNamed(t *testing.T) {
	t.Parallel()
	api := newAdminAPI(t, http.StatusNotFound, `{"error":{"code":"not_found","message":"There is no such resource."}}`)
	if _, err := runUse(t, api.environment(), "stream", "get", "strm_nope"); err == nil || err.Error() != "strm_nope: There is no such resource (not_found)" {
		t.Error(err)
	}
	if _, err := runUse(t, api.environment(), "key", "list", "--account", "acct_nope"); err == nil || !strings.HasPrefix(err.Error(), "account acct_nope: ") {
		t.Error(err)
	}
	gateway := newAdminAPI(t, http.StatusForbidden, `{"error":{"code":"ROUTE_NOT_MAPPED","message":"No product."}}`)
	if _, err := runUse(t, gateway.environment(), "stream", "list"); err == nil || !strings.Contains(err.Error(), "profile gateway") {
		t.Error(err)
	}
}

func TestValuesAreCompleted(t *testing.T) {
	t.Parallel()
	a := newAdminAPI(t, http.StatusOK, `{"data":[{"id":"key_1","name":"ci","scope":"streams:read","client_id":"app_1","version":7,"note":"why"},{"id":"key_2","scope":"streams:read"}]}`)
	for args, want := range map[string]string{
		"key revoke ":               "key_1\tci\nkey_2\n:4",
		"key create --scope s":      "streams:read\n:4",
		"webhook get ":              "key_1\tci\nkey_2\n:4",
		"key list -o ":              "text\njson\nyaml\nwide\n:4",
		"key list --account ":       "key_1\tci\nkey_2\n:4",
		"config rollback ":          "7\tci\n:4",
		"webhook update x --event ": "ci\twhy\n:4",
		"stream list --context ":    "local\n:4",
		"help key ro":               "rotate\t",
	} {
		words := strings.Split(args, " ")
		env := a.environment().With(map[string]string{"SLUICE_CONTEXTS": filepath.Join(t.TempDir(), "none")})
		out, err := executeApply(t, commands(env), append([]string{"__complete"}, words...)...)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
}

// documents are the OpenAPI documents that commands call by.
var documents = []string{"web/api/admin.yaml", "web/api/openapi.yaml", "workers/webhooks/openapi.yaml", "workers/schedules/openapi.yaml", "workers/payments/openapi.yaml",
	"controlplane/gateway/requestlog/openapi.yaml", "media/openapi.yaml"}

var variable = regexp.MustCompile(`\{[^}]*\}`)

// Every command that is a call is of an operation that there is, and what it sends and
// shows are fields of that.
func TestCommandsAreOfOperations(t *testing.T) {
	t.Parallel()
	operations := map[string]*openapi3.Operation{}
	for _, name := range documents {
		raw, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if name == documents[0] { // schemas of the configuration are put in when it is served
			raw = bytes.Replace(raw, []byte("\n  schemas:\n"), []byte("\n  schemas:\n    Document: {}\n    Product: {}\n    Route: {}\n    Plan: {}\n    Class: {}\n"), 1)
		}
		d, err := openapi3.NewLoader().LoadFromData(raw)
		if err != nil {
			t.Fatal(name, err)
		}
		for path, item := range d.Paths.Map() {
			for method, o := range item.Operations() {
				o.Parameters = append(o.Parameters, item.Parameters...)
				operations[method+" "+variable.ReplaceAllString(path, "{}")] = o
			}
		}
	}
	seen := 0
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		if called := c.Annotations[callNote]; called != "" && !strings.HasSuffix(called, " ") {
			seen++
			path, _, _ := strings.Cut(called, "?")
			if operations[variable.ReplaceAllString(path, "{}")] == nil {
				t.Errorf("`%s` calls %s, which is no operation", c.CommandPath(), called)
			}
		}
		for _, below := range c.Commands() {
			look(below)
		}
	}
	look(commands(app.Environment{}))
	if seen < 60 {
		t.Errorf("only %d commands were looked at", seen)
	}
	for _, r := range resources() {
		checkResource(t, r, operations)
	}
}

// checkResource compares the fields of a resource with the operations of it.
func checkResource(t *testing.T, r resource, operations map[string]*openapi3.Operation) {
	t.Helper()
	path := variable.ReplaceAllString(r.path, "{}")
	list, one := answerOf(operations["GET "+path]), answerOf(operations["GET "+path+"/{}"])
	for _, f := range append(append([]string{}, r.list...), r.wide...) {
		if !has(items(list), f) {
			t.Errorf("%s: a list has no field %s", r.use, f)
		}
	}
	for _, f := range r.one {
		if !has(one, f) {
			t.Errorf("%s: one has no field %s", r.use, f)
		}
	}
	for _, f := range r.filters {
		if operations["GET "+path].Parameters.GetByInAndName("query", f.field) == nil {
			t.Errorf("%s: a list has no filter %s", r.use, f.field)
		}
	}
	for operation, flags := range map[string][]option{"POST " + path: r.create, "PATCH " + path + "/{}": r.update} {
		for _, f := range flags {
			if !has(bodyOf(operations[operation]), f.field) {
				t.Errorf("%s: %s takes no field %s", r.use, operation, f.field)
			}
		}
	}
	for _, k := range r.actions {
		method := k.method
		if method == "" {
			method = http.MethodGet
		}
		if k.path == r.path+"/{0}" || k.path == "" {
			continue
		}
		answer := answerOf(operations[method+" "+variable.ReplaceAllString(k.path, "{}")])
		for _, f := range k.one {
			if !has(answer, f) {
				t.Errorf("%s %s: the answer has no field %s", r.use, k.use, f)
			}
		}
		for _, f := range append(append([]string{}, k.list...), k.wide...) {
			if !has(items(answer), f) {
				t.Errorf("%s %s: a list has no field %s", r.use, k.use, f)
			}
		}
	}
}

// answerOf is the schema of what an operation answers when it works; nil: it has none.
func answerOf(o *openapi3.Operation) *openapi3.Schema {
	if o == nil {
		return nil
	}
	for status, r := range o.Responses.Map() {
		if status[0] == '2' && r.Value.Content.Get("application/json") != nil {
			return r.Value.Content.Get("application/json").Schema.Value
		}
	}
	return nil
}

func bodyOf(o *openapi3.Operation) *openapi3.Schema {
	if o == nil || o.RequestBody == nil {
		return nil
	}
	for _, m := range o.RequestBody.Value.Content {
		return m.Schema.Value
	}
	return nil
}

// items is the schema of the elements of data.
func items(s *openapi3.Schema) *openapi3.Schema {
	if s == nil {
		return nil
	}
	for _, part := range slices.Concat(s.AllOf, s.OneOf, openapi3.SchemaRefs{{Value: s}}) { // a page says of its data only that it is an array
		if data := part.Value.Properties["data"]; data != nil && data.Value.Items != nil && (len(s.AllOf) == 0 || data.Value.Items.Value.Properties != nil) {
			return data.Value.Items.Value
		}
	}
	return nil
}

// property finds a field of an object, whatever it is composed of.
func property(s *openapi3.Schema, name string) *openapi3.Schema {
	if s == nil {
		return nil
	}
	if p := s.Properties[name]; p != nil {
		return p.Value
	}
	for _, list := range []openapi3.SchemaRefs{s.AllOf, s.OneOf, s.AnyOf} {
		for _, part := range list {
			if p := property(part.Value, name); p != nil {
				return p
			}
		}
	}
	return nil
}

// has reports whether an object has a field, which may lead into what has no schema.
func has(s *openapi3.Schema, field string) bool {
	for name := range strings.SplitSeq(output.Fields(field)[0].Name, ".") {
		p := property(s, name)
		if p == nil {
			return s != nil && len(s.Properties)+len(s.AllOf)+len(s.OneOf)+len(s.AnyOf) == 0
		}
		s = p
	}
	return true
}
