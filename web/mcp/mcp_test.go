package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/web/mcp"
)

var secret = []byte("a secret of the edges")

const document = `
paths:
  /v1/things/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    get:
      operationId: getThing
      summary: Read a thing
      security: [{key: []}]
      x-sluice: {route: things.get, scope: things:read, class: events}
      responses: {'200': {description: it, content: {application/json: {schema: {type: object, required: [id], properties: {id: {type: string}}}}}}}
    delete:
      operationId: deleteThing
      summary: Delete a thing
      security: [{session: []}]
      responses: {'204': {description: gone}}
  /v1/things:
    post:
      operationId: createThing
      summary: Make a thing
      security: [{key: []}, {token: []}]
      requestBody: {content: {application/json: {schema: {type: object, properties: {name: {type: string}}}}}}
      responses: {'201': {description: it, content: {application/json: {schema: {type: object}}}}}
    get:
      operationId: listThings
      summary: List things
      security: [{key: []}]
      responses: {'200': {description: all, content: {application/json: {schema: {type: array, items: {type: string}}}}}}
  /mcp:
    post: {operationId: itself, security: [{key: []}], responses: {'204': {description: nothing}}}
`

// gateway stands for the gateway: it answers as told and keeps what it was asked.
type gateway struct {
	mu     sync.Mutex
	asked  []*http.Request
	bodies []string
	status int
	header http.Header
	body   string
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	b, _ := io.ReadAll(r.Body)
	g.asked, g.bodies = append(g.asked, r), append(g.bodies, string(b))
	for name, v := range g.header {
		w.Header()[name] = v
	}
	w.WriteHeader(g.status)
	_, _ = io.WriteString(w, g.body)
}

// answer says what the next requests get.
func (g *gateway) answer(status int, body string, header ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.status, g.body, g.header = status, body, http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		g.header.Set(header[i], header[i+1])
	}
}

// last returns the newest request and its body.
func (g *gateway) last(t *testing.T) (*http.Request, string) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.asked) == 0 {
		t.Fatal("the gateway was not asked")
	}
	return g.asked[len(g.asked)-1], g.bodies[len(g.bodies)-1]
}

// bed is an endpoint with a gateway behind it.
type bed struct {
	url     string
	gateway *gateway
	text    func(string, error) // sets the document
}

func start(t *testing.T, change func(*mcp.Config)) bed {
	t.Helper()
	g := &gateway{status: 200, body: `{"id":"x"}`}
	gw := httptest.NewServer(g)
	t.Cleanup(gw.Close)
	var mu sync.Mutex
	text, failure := document, error(nil)
	c := mcp.Config{
		Document: func(context.Context) ([]byte, error) { mu.Lock(); defer mu.Unlock(); return []byte(text), failure },
		Identity: identity.Verifier{Secrets: func() [][]byte { return [][]byte{secret} }},
		Respond:  httpapi.Adapter{DocsBase: "https://gw.example", Log: slog.New(slog.DiscardHandler)},
		Gateway:  gw.URL, PublicURL: "https://gw.example", Version: "1",
	}
	if change != nil {
		change(&c)
	}
	s := httptest.NewServer(mcp.New(c))
	t.Cleanup(s.Close)
	return bed{s.URL + "/mcp", g, func(s string, err error) { mu.Lock(); defer mu.Unlock(); text, failure = s, err }}
}

// identified is what an edge does to requests with a credential.
type identified struct{ credential string }

func (i identified) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if i.credential != "" {
		r.Header.Set("Authorization", "Bearer "+i.credential)
		r.Header.Set(identityheader.AddressHeader, "192.0.2.7")
		r.Header.Set(identityheader.Header, identityheader.Sign(secret, identityheader.Caller{Account: "acct_1", Key: "key_1"}, time.Now().Unix()))
	}
	return http.DefaultTransport.RoundTrip(r)
}

func connect(t *testing.T, b bed, credential string) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: b.url, HTTPClient: &http.Client{Transport: identified{credential}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// run calls a tool and returns its text, its structured content as JSON, and
// whether it failed.
func run(t *testing.T, s *sdk.ClientSession, tool string, arguments any) (text, structured string, failed bool) {
	t.Helper()
	res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	b, err := json.Marshal(res.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	return res.Content[0].(*sdk.TextContent).Text, string(b), res.IsError
}

// Tools are listed for everyone, and say what their routes ask.
func TestToolsAreListed(t *testing.T) {
	t.Parallel()
	list, err := connect(t, start(t, nil), "").ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]*sdk.Tool{}
	for _, tool := range list.Tools {
		by[tool.Name] = tool
	}
	if len(by) != 4 || by["itself"] != nil {
		t.Errorf("%d tools; the endpoint must not be one", len(by))
	}
	get, remove := by["getThing"], by["deleteThing"]
	if get.Meta["sluice.dev/scope"] != "things:read" || get.Meta["sluice.dev/rate_class"] != "events" || get.Meta["sluice.dev/route"] != "GET /v1/things/{id}" ||
		!strings.Contains(get.Description, "Needs scope things:read.") || !get.Annotations.ReadOnlyHint {
		t.Errorf("%+v %+v", get, get.Meta)
	}
	if !strings.Contains(remove.Description, "session token") || !*remove.Annotations.DestructiveHint || remove.Annotations.ReadOnlyHint {
		t.Errorf("%+v", remove)
	}
	for name, tool := range by {
		if tool.OutputSchema != nil {
			t.Errorf("%s: an answer that is cut does not follow %v", name, tool.OutputSchema)
		}
	}
}

// A call is a request to the tool's route, in the caller's name.
func TestACallIsARequestInTheCallersName(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	s := connect(t, b, "slk_secret")
	if text, structured, failed := run(t, s, "getThing", map[string]any{"id": "a b"}); failed || text != `{"id":"x"}` || structured != text {
		t.Errorf("%s %s %v", text, structured, failed)
	}
	r, _ := b.gateway.last(t)
	if r.Method != "GET" || r.URL.EscapedPath() != "/v1/things/a%20b" || r.Header.Get("Authorization") != "Bearer slk_secret" ||
		r.Header.Get("Via") != "1.1 sluice-mcp" || r.Header.Get(identityheader.Header) != "" || r.Header.Get("Mcp-Name") != "" {
		t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
	}
	if addr, ok := identityheader.VerifyVoucher(secret, r.Header.Get(identityheader.VoucherHeader), "key_1", time.Now().Unix()); !ok || addr.String() != "192.0.2.7" {
		t.Errorf("it vouches for %v: %v", addr, r.Header)
	}
	b.gateway.answer(201, `{"id":"y"}`)
	run(t, s, "createThing", map[string]any{"name": "n", "idempotency_key": "k"})
	if r, body := b.gateway.last(t); r.Method != "POST" || body != `{"name":"n"}` || r.Header.Get("Idempotency-Key") != "k" || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %v %s", r.Method, r.Header, body)
	}
	b.gateway.answer(204, "")
	if text, structured, failed := run(t, s, "deleteThing", map[string]any{"id": "x"}); failed || text != `{"done":true}` || structured != text {
		t.Errorf("%s %s %v", text, structured, failed)
	}
	b.gateway.answer(200, `["a"]`)
	if text, structured, failed := run(t, s, "listThings", nil); failed || text != `["a"]` || structured != "null" {
		t.Errorf("%s %s %v", text, structured, failed)
	}
}

// What the gateway refuses, the agent can read.
func TestRefusalsAreResults(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	s := connect(t, b, "slk_secret")
	for _, c := range []struct {
		status int
		body   string
		header []string
		want   string
	}{
		{403, `{"error":{"code":"AUTH_002"}}`, nil, `HTTP 403: {"error":{"code":"AUTH_002"}}`},
		{429, `{"error":{}}`, []string{"Retry-After", "7"}, "HTTP 429: {\"error\":{}}\nRetry after 7 seconds."},
		{302, ``, []string{"Location", "http://127.0.0.1:1/"}, "HTTP 302: "},
		{200, strings.Repeat("x", 5<<20), nil, "more than"},
	} {
		b.gateway.answer(c.status, c.body, c.header...)
		if text, _, failed := run(t, s, "getThing", map[string]any{"id": "x"}); !failed || !strings.Contains(text, c.want) {
			t.Errorf("%d: %v %.200s", c.status, failed, text)
		}
	}
	if text, _, failed := run(t, s, "getThing", map[string]any{"it": "x"}); !failed || !strings.Contains(text, `"field":"id"`) || !strings.Contains(text, `"field":"it"`) {
		t.Errorf("bad arguments: %v %s", failed, text)
	}
	if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "nothing"}); err == nil {
		t.Error("an unknown tool was called")
	}
}

// A gateway that cannot be reached is said so, without inner addresses.
func TestAGatewayThatIsAway(t *testing.T) {
	t.Parallel()
	b := start(t, func(c *mcp.Config) { c.Gateway = "http://127.0.0.1:1" })
	text, _, failed := run(t, connect(t, b, "slk_secret"), "getThing", map[string]any{"id": "x"})
	if !failed || text != "The gateway could not be reached." {
		t.Errorf("%v %s", failed, text)
	}
}

// post sends one message and returns the whole answer.
func post(t *testing.T, b bed, message string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", b.url, strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"getThing","arguments":{"id":"x"}}}`

// Whoever calls a tool without a credential is told where to get one.
func TestCallsNeedACredential(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	want := `Bearer realm="sluice", resource_metadata="https://gw.example/.well-known/oauth-protected-resource/mcp"`
	for name, headers := range map[string][]string{
		"none":                  nil,
		"no identity":           {"Authorization", "Bearer slk_x"},
		"an identity of nobody": {identityheader.Header, "v1;a=x;k=y;p=;s=;e=9999999999;m=00"},
	} {
		resp, body := post(t, b, call, headers...)
		if resp.StatusCode != 401 || resp.Header.Get("WWW-Authenticate") != want || !strings.Contains(body, "authentication_required") {
			t.Errorf("%s: %d %v %s", name, resp.StatusCode, resp.Header, body)
		}
	}
	if len(b.gateway.asked) != 0 {
		t.Error("the gateway was asked")
	}
}

func TestWhoMayCome(t *testing.T) {
	t.Parallel()
	b := start(t, func(c *mcp.Config) { c.Hosts = []string{"alias.example"} })
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for name, c := range map[string]struct {
		headers []string
		status  int
	}{
		"an address":               {nil, 200},
		"the public name":          {[]string{"Host", "gw.example", "Origin", "https://gw.example"}, 200},
		"another name of ours":     {[]string{"Host", "alias.example:8443"}, 200},
		"a name without a dot":     {[]string{"Host", "gateway:8080"}, 200},
		"a foreign host":           {[]string{"Host", "evil.example"}, 403},
		"both foreign, and equal":  {[]string{"Host", "evil.example", "Origin", "http://evil.example"}, 403},
		"a foreign origin":         {[]string{"Origin", "https://evil.example"}, 403},
		"an origin without a host": {[]string{"Origin", "null"}, 403},
		"no host to compare with":  {[]string{"Origin", "file://"}, 403},
	} {
		if resp, body := post(t, b, list, c.headers...); resp.StatusCode != c.status {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
	}
}

// A tool's own request calls no tool.
func TestNoLoops(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	signed := identityheader.Sign(secret, identityheader.Caller{Account: "acct_1", Key: "key_1"}, time.Now().Unix())
	resp, body := post(t, b, call, identityheader.Header, signed, "Via", "1.1 a, 1.1 sluice-mcp")
	if resp.StatusCode != 400 || !strings.Contains(body, "cannot call") || len(b.gateway.asked) != 0 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// The tools follow the document, and a document that cannot be had is our fault.
func TestTheToolsFollowTheDocument(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	b.text(strings.ReplaceAll(document, "getThing", "readThing"), nil)
	if _, body := post(t, b, list); !strings.Contains(body, "readThing") || strings.Contains(body, "getThing") {
		t.Error(body)
	}
	b.text("", errors.New("the database is away"))
	if resp, body := post(t, b, list); resp.StatusCode != 500 || strings.Contains(body, "database") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	b.text("[]", nil)
	if resp, body := post(t, b, list); resp.StatusCode != 500 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// Every version that the manifest names is spoken.
func TestVersions(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	for _, version := range []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		message := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, version)
		if _, body := post(t, b, message); !strings.Contains(body, fmt.Sprintf(`"protocolVersion":%q`, version)) || !strings.Contains(body, `"prompts"`) {
			t.Error(body)
		}
	}
	const modern = "2026-07-28"
	message := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":%q,`+
		`"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, modern)
	if _, body := post(t, b, message, "MCP-Protocol-Version", modern, "Mcp-Method", "server/discover"); !strings.Contains(body, modern) || !strings.Contains(body, "supportedVersions") {
		t.Error(body)
	}
}
