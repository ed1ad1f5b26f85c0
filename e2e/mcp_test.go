package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// carrier adds a bearer token, if it has one, to a client's requests.
type carrier struct{ token string }

func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	return client.Transport.RoundTrip(r)
}

// agent is the official client, connected to the gateway's tools.
func (s *stack) agent(t testing.TB, token string) *sdk.ClientSession {
	t.Helper()
	return s.agentAt(t, "/mcp", token)
}

// agentAt is agent at an address that chooses tools.
func (s *stack) agentAt(t testing.TB, path, token string) *sdk.ClientSession {
	t.Helper()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "e2e", Version: "1"}, nil).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: s.url(path), HTTPClient: &http.Client{Transport: carrier{token}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// tools lists all tools by name.
func tools(t testing.TB, a *sdk.ClientSession) map[string]*sdk.Tool {
	t.Helper()
	by := map[string]*sdk.Tool{}
	for tool, err := range a.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		by[tool.Name] = tool
	}
	return by
}

// use calls a tool; what it returns is the structured result, or the text of the
// failure.
func use(t testing.TB, a *sdk.ClientSession, tool string, arguments map[string]any) (result map[string]any, failure string) {
	t.Helper()
	res, err := a.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	text := res.Content[0].(*sdk.TextContent).Text
	if res.IsError {
		return nil, text
	}
	result, ok := res.StructuredContent.(map[string]any)
	if !ok {
		t.Fatalf("%s: %s", tool, text)
	}
	return result, ""
}

// must is use for calls that succeed.
func must(t testing.TB, a *sdk.ClientSession, tool string, arguments map[string]any) map[string]any {
	t.Helper()
	result, failure := use(t, a, tool, arguments)
	if failure != "" {
		t.Fatalf("%s: %s", tool, failure)
	}
	return result
}

// An agent does through tools what a program does through the API.
func TestAnAgentWorksThroughTools(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	a := s.agent(t, s.dev["SLUICE_API_KEY"])
	made := must(t, a, "createStream", map[string]any{"title": "By an agent", "protocol": "rtmp", "idempotency_key": t.Name()})
	again := must(t, a, "createStream", map[string]any{"title": "By an agent", "protocol": "rtmp", "idempotency_key": t.Name()})
	id := fmt.Sprint(made["id"])
	if again["id"] != made["id"] || made["title"] != "By an agent" {
		t.Fatalf("%v %v", made, again)
	}
	schedule := must(t, a, "createSchedule", map[string]any{"name": t.Name(), "type": "stream_start",
		"schedule": map[string]any{"type": "recurring", "cron": "0 18 * * *", "timezone": "Europe/Berlin"},
		"action":   map[string]any{"streamId": id, "action": "start"}})
	if got := must(t, a, "getSchedule", map[string]any{"id": schedule["id"]}); got["status"] != "active" {
		t.Fatalf("%v", got)
	}
	if got := must(t, a, "updateStream", map[string]any{"id": id, "title": "Renamed"}); got["title"] != "Renamed" {
		t.Fatalf("%v", got)
	}
	for tool, gone := range map[string]any{"deleteStream": id, "deleteSchedule": schedule["id"]} {
		if got := must(t, a, tool, map[string]any{"id": gone}); got["done"] != true {
			t.Fatalf("%s: %v", tool, got)
		}
	}
	if _, failure := use(t, a, "getStream", map[string]any{"id": id}); !strings.HasPrefix(failure, "HTTP 404") {
		t.Fatal(failure)
	}
}

// Every tool that reads and needs no more than a credential answers what the document
// says, and of that the fields that are asked for alone.
func TestToolsAnswerAsTheySay(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	described := s.described(t, s.dev["SLUICE_GATEWAY_URL"], "/openapi.json", s.dev["SLUICE_API_KEY"])
	a, person := s.agentAt(t, "/mcp?toolsets=all", s.dev["SLUICE_API_KEY"]), s.agent(t, s.dev["SLUICE_SESSION_TOKEN"])
	checked := 0
	for name, tool := range tools(t, a) {
		if needed, _ := tool.InputSchema.(map[string]any)["required"].([]any); len(needed) > 0 || !tool.Annotations.ReadOnlyHint {
			continue
		}
		agent := a
		if strings.Contains(tool.Description, "session token") {
			agent = person
		}
		result, failure := use(t, agent, name, nil)
		if failure != "" {
			off := strings.Contains(name, "Phone") || slices.Contains([]string{"describeMoq", "describeNDI", "describeDante", "describeOMT"}, name)
			if !strings.HasPrefix(failure, "HTTP 409") && (!off || !strings.HasPrefix(failure, "HTTP 501")) { // no legacy provider is connected; this stack has no media engine
				t.Errorf("%s: %s", name, failure)
			}
			continue
		}
		checked++
		if cut := result["_cut"]; cut != nil {
			t.Logf("%s: %v", name, cut) // others have made very many
			delete(result, "_cut")
		}
		_, path, _ := strings.Cut(fmt.Sprint(tool.Meta["sluice.dev/route"]), " ")
		schema := described.doc.Paths.Value(path).Get.Responses.Status(http.StatusOK).Value.Content["application/json"].Schema.Value
		if err := schema.VisitJSON(result, openapi3.EnableJSONSchema2020()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for field := range result {
			if got := must(t, agent, name, map[string]any{"fields": []string{field}}); len(got) > 2 || !has(got, field) {
				t.Errorf("%s: asked for %s, got %v", name, field, got)
			}
			break
		}
	}
	if checked < 12 {
		t.Errorf("only %d tools were checked", checked)
	}
}

func has(o map[string]any, name string) bool { _, ok := o[name]; return ok }

// A model that cannot read all tools finds what it needs by words, and calls it, with a
// key that may do everything. A key that may do little is shown what it can call.
func TestAnAgentFindsItsTools(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	a := s.agent(t, s.dev["SLUICE_API_KEY"])
	if list := tools(t, a); len(list) != 2 {
		t.Fatalf("%d tools are listed", len(list))
	}
	for words, want := range map[string]string{"subscribe to events by webhook": "createWebhook", "how many viewers did my stream have": "countViews", "cut a clip": "createClip", "schedule a call for every night": "createSchedule"} {
		found := must(t, a, "search_tools", map[string]any{"query": words})
		if !slices.ContainsFunc(found["tools"].([]any), func(hit any) bool { return hit.(map[string]any)["name"] == want }) {
			t.Errorf("%q: no %s in %v", words, want, found)
		}
	}
	made := must(t, a, "call_tool", map[string]any{"name": "createStream", "arguments": map[string]any{"title": "Found", "fields": []string{"id", "title"}}})
	if len(made) != 2 || made["title"] != "Found" {
		t.Errorf("%v", made)
	}
	must(t, a, "call_tool", map[string]any{"name": "deleteStream", "arguments": map[string]any{"id": made["id"]}})
	key, _ := s.newKey(t, "webhooks:read")
	for name, tool := range tools(t, s.agent(t, key)) {
		if scope := tool.Meta["sluice.dev/scope"]; scope != nil && scope != "webhooks:read" {
			t.Errorf("%s needs %v", name, scope)
		}
	}
	for path, most := range map[string]int{"/mcp": 4 << 10, "/mcp?toolsets=webhooks": 20 << 10, "/mcp?toolsets=all": 1 << 20} {
		r := call(t, http.MethodPost, s.url(path), s.dev["SLUICE_API_KEY"], map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
		wantStatus(t, r, 200)
		t.Logf("%s: %d tools, %d bytes", path, strings.Count(r.body, `"inputSchema"`), len(r.body))
		if len(r.body) > most {
			t.Errorf("%s: %d bytes", path, len(r.body))
		}
	}
}

// fits fails unless a value follows a JSON Schema.
func fits(t testing.TB, name string, schema, value any) {
	t.Helper()
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema", schema); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	compiled, err := c.Compile("schema")
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := compiled.Validate(value); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// Every surface that agents ask for has its tools, and each tool names its scope.
func TestWhichToolsThereAre(t *testing.T) {
	t.Parallel()
	by := tools(t, theStack(t).agentAt(t, "/mcp?toolsets=all", "")) // without a credential
	for name, scope := range map[string]any{
		"createStream": "streams:write", "listStreams": "streams:read", "createClip": "clips:write", "listSchedules": "schedules:read",
		"triggerSchedule": "schedules:write", "createWebhook": "webhooks:write", "listWebhooks": "webhooks:read", "countViews": "analytics:read",
	} {
		if tool := by[name]; tool == nil || tool.Meta["sluice.dev/scope"] != scope || !strings.Contains(tool.Description, fmt.Sprint(scope)) {
			t.Errorf("%s: %+v", name, tool)
		}
	}
	families := map[string]int{}
	for name, tool := range by {
		_, path, _ := strings.Cut(fmt.Sprint(tool.Meta["sluice.dev/route"]), " /v1/")
		family, _, _ := strings.Cut(path, "/")
		families[family]++
		if tool.InputSchema == nil || tool.Title == "" {
			t.Errorf("%s: %+v", name, tool)
		}
	}
	for _, family := range []string{"streams", "events", "webhooks", "auth", "billing", "users", "vod", "recordings", "clips"} {
		if families[family] == 0 {
			t.Errorf("no tools of %s: %v", family, families)
		}
	}
}

// A tool is its route: what the credential may not do, it does not do, and says
// so in the words of the API.
func TestToolsAskWhatTheirRoutesAsk(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	key, _ := s.newKey(t, "streams:read")
	a := s.agent(t, key)
	must(t, a, "listStreams", nil)
	if _, failure := use(t, a, "createStream", map[string]any{"title": "x"}); !strings.HasPrefix(failure, "HTTP 403") || !strings.Contains(failure, "AUTH_002") || !strings.Contains(failure, "streams:write") {
		t.Error(failure)
	}
	if _, failure := use(t, a, "createKey", map[string]any{"name": "x", "scopes": []string{"streams:read"}}); !strings.HasPrefix(failure, "HTTP 401") {
		t.Error(failure)
	}
	if _, failure := use(t, a, "listStreams", map[string]any{"limit": 1000}); !strings.HasPrefix(failure, "HTTP 400") || !strings.Contains(failure, `"field":"limit"`) {
		t.Error(failure)
	}
	if _, failure := use(t, a, "getStream", map[string]any{"id": "../keys"}); !strings.Contains(failure, `"field":"id"`) {
		t.Error(failure)
	}
	if _, failure := use(t, s.agent(t, s.dev["SLUICE_SESSION_TOKEN"]), "listKeys", nil); failure != "" {
		t.Error(failure)
	}
}

// A call counts as what it is: a message, and a request to the tool's route.
func TestToolsCount(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	_, key := s.keyedAccount(t, "free")
	left := func() int64 {
		r := call(t, http.MethodGet, s.url("/v1/streams"), key, nil)
		wantStatus(t, r, 200)
		return number(t, r, "X-RateLimit-Remaining")
	}
	before := left()
	message := map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": "listStreams", "arguments": map[string]any{}}}
	r := call(t, http.MethodPost, s.url("/mcp"), key, message)
	wantStatus(t, r, 200)
	wantHeaders(t, r)
	if after := left(); before-after != 3 { // the message, the tool's request, and this one
		t.Errorf("%d left, then %d: %s", before, after, r.body)
	}
}

// Descriptions are open; calling a tool needs a credential, and says where to
// get one.
func TestMCPAtTheEdge(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	at := s.url("/mcp")
	gateway := s.dev["SLUICE_GATEWAY_URL"]
	list := map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
	use := map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": "listStreams", "arguments": map[string]any{}}}
	metadata := `resource_metadata="` + gateway + `/.well-known/oauth-protected-resource/mcp"`

	r := call(t, http.MethodPost, at, "", use)
	wantError(t, r, 401, "authentication_required")
	if c := r.Header.Get("WWW-Authenticate"); c != `Bearer realm="sluice", `+metadata {
		t.Error(c)
	}
	r = call(t, http.MethodPost, at, swapLast(s.dev["SLUICE_API_KEY"]), list)
	wantError(t, r, 401, "invalid_api_key")
	if c := r.Header.Get("WWW-Authenticate"); c != `Bearer realm="sluice", error="invalid_token", `+metadata {
		t.Error(c)
	}
	wantStatus(t, call(t, http.MethodPost, at, "", list), 200)
	wantStatus(t, call(t, http.MethodPost, at, "", list, "Origin", gateway), 200)
	wantError(t, call(t, http.MethodPost, at, "", list, "Origin", "https://evil.example"), 403, "AUTH_003")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at, strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "evil.example"
	req.Header.Set("Origin", "http://evil.example")
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 403 {
		t.Errorf("a foreign name as Host and Origin: %d", res.StatusCode)
	}

	r = call(t, http.MethodGet, at, "", nil)
	wantStatus(t, r, 200)
	wantStatus(t, call(t, http.MethodGet, at, "", nil, "Accept", "text/event-stream"), 405)
	wantStatus(t, call(t, http.MethodDelete, at, "", nil), 405)

	r = call(t, http.MethodGet, gateway+"/.well-known/oauth-protected-resource/mcp", "", nil)
	wantStatus(t, r, 200)
	if got := into[struct {
		Resource string
		Servers  []string `json:"authorization_servers"`
	}](t, r); got.Resource != at || len(got.Servers) != 1 {
		t.Errorf("%+v", got)
	}
}

// The challenge names the scope that is missing.
func TestChallenges(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	key, _ := s.newKey(t, "streams:read")
	metadata := `resource_metadata="` + s.url("/.well-known/oauth-protected-resource") + `"`
	for _, c := range []struct{ credential, want string }{
		{"", `Bearer realm="sluice", ` + metadata},
		{"nonsense", `Bearer realm="sluice", error="invalid_token", ` + metadata},
		{key, `Bearer realm="sluice", error="insufficient_scope", scope="webhooks:read", ` + metadata},
	} {
		if got := call(t, http.MethodGet, s.url("/v1/webhooks"), c.credential, nil).Header.Get("WWW-Authenticate"); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
	// What the API refuses by itself has one too.
	if got := call(t, http.MethodGet, s.url("/v1/auth/keys"), key, nil).Header.Get("WWW-Authenticate"); !strings.Contains(got, metadata) {
		t.Error(got)
	}
}
