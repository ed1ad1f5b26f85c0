package mcp_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"sluice.dev/sluice/runtime/server"
)

func start(t *testing.T, publicURL string) string {
	t.Helper()
	h, err := server.New(server.Config{Standalone: true, Gateway: "http://127.0.0.1:1", PublicURL: publicURL, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL + "/mcp"
}

// withToken adds a bearer token to a client's requests.
type withToken struct{ token string }

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func connect(t *testing.T, url, token string) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: withToken{token}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

func TestOfficialClient(t *testing.T) {
	t.Parallel()
	session := connect(t, start(t, ""), "slk_test")
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != 2 {
		t.Fatalf("%v %v", tools, err)
	}
	for _, c := range []struct {
		tool string
		args any
		want string
	}{
		{"list_models", map[string]any{}, `{"models":["echo-1","echo-1-slow"]}`},
		{"complete", map[string]any{"model": "echo-1", "prompt": "hello there", "system": "x"}, `"text":"hello there"`},
		{"complete", map[string]any{"model": "echo-1", "prompt": "one two three", "max_tokens": 2}, `"finish_reason":"length"`},
	} {
		res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: c.tool, Arguments: c.args})
		if err != nil || res.IsError {
			t.Errorf("%s: %v %+v", c.tool, err, res)
			continue
		}
		if got := res.Content[0].(*sdk.TextContent).Text; !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.tool, got)
		}
	}
	res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "complete", Arguments: map[string]any{"model": "none", "prompt": "x"}})
	if err != nil || !res.IsError || !strings.Contains(res.Content[0].(*sdk.TextContent).Text, "not_found") {
		t.Errorf("an unknown model: %v %+v", err, res)
	}
}

func TestOnlyCallsNeedAToken(t *testing.T) {
	t.Parallel()
	session := connect(t, start(t, ""), "")
	if tools, err := session.ListTools(t.Context(), nil); err != nil || len(tools.Tools) != 2 {
		t.Errorf("tools/list: %v", err)
	}
	if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "list_models"}); err == nil {
		t.Error("a tool was called without a token")
	}
}

func post(t *testing.T, url, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

func TestPlainClients(t *testing.T) {
	t.Parallel()
	url := start(t, "")
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_models","arguments":{}}}`
	for name, c := range map[string]struct {
		body   string
		header []string
		status int
		want   string
	}{
		"initialize":            {`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, nil, 200, `"protocolVersion":"2025-06-18"`},
		"initialize, old":       {`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, nil, 200, `"protocolVersion":"2024-11-05"`},
		"tools/list":            {`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, []string{"Accept", "application/json"}, 200, `"list_models"`},
		"a notification":        {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil, 202, ``},
		"tools/call, no token":  {call, nil, 401, `authentication_required`},
		"tools/call in escapes": {strings.Replace(call, "tools", `\u0074ools`, 1), nil, 401, `authentication_required`},
		"tools/call hidden":     {strings.Replace(call, `"method"`, `"method":"tools/list","Method"`, 1), nil, 401, `authentication_required`},
		"tools/call in a batch": {`[` + call + `]`, nil, 401, `authentication_required`},
		"tools/call":            {call, []string{"Authorization", "Bearer x"}, 200, `echo-1`},
		"no JSON":               {`{`, nil, 400, `"code":-32700`},
		"not a message":         {`7`, nil, 400, `"code":-32600`},
		"a version that is not": {call, []string{"Authorization", "Bearer x", "MCP-Protocol-Version", "1999-01-01"}, 400, `"jsonrpc":"2.0"`},
		"another content type":  {call, []string{"Authorization", "Bearer x", "Content-Type", "text/plain"}, 415, `"jsonrpc":"2.0"`},
		"too large":             {`"` + strings.Repeat("x", 1<<20) + `"`, nil, 413, `request_too_large`},
		"another site":          {call, []string{"Origin", "https://evil.example"}, 403, `AUTH_003`},
		"another name for us":   {call, []string{"Origin", "https://evil.example", "Host", "evil.example"}, 403, `AUTH_003`},
		"our own page":          {`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, []string{"Origin", strings.TrimSuffix(url, "/mcp")}, 200, `"list_models"`},
		"a nonsensical origin":  {call, []string{"Origin", "null"}, 403, `AUTH_003`},
	} {
		status, header, body := post(t, url, c.body, c.header...)
		if status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s", name, status, body)
		}
		if body != "" && header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %s", name, header.Get("Content-Type"))
		}
	}
}

func TestPublicAddress(t *testing.T) {
	t.Parallel()
	url := start(t, "https://chat.example")
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	if status, _, body := post(t, url, list, "Origin", "https://chat.example", "Host", "chat.example"); status != 200 {
		t.Errorf("its own page: %d %s", status, body)
	}
	if status, _, _ := post(t, url, list, "Origin", "https://other.example", "Host", "other.example"); status != 403 {
		t.Errorf("another name: %d", status)
	}
}

// A client that knows nothing but the address finds where to get a token (RFC 9728): the 401
// names the metadata, and these name the very address that was called.
func TestTheWayToAToken(t *testing.T) {
	t.Parallel()
	h, err := server.New(server.Config{Standalone: true, Gateway: "http://127.0.0.1:1", PublicURL: "https://chat.example", DocsBase: "https://gw.example", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	status, header, _ := post(t, s.URL+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_models","arguments":{}}}`, "Host", "chat.example")
	if want := `Bearer realm="sluice", resource_metadata="https://chat.example/.well-known/oauth-protected-resource/mcp"`; status != 401 || header.Get("WWW-Authenticate") != want {
		t.Errorf("%d %q", status, header.Get("WWW-Authenticate"))
	}
	for path, resource := range map[string]string{"/mcp": "https://chat.example/mcp", "": "https://chat.example"} {
		resp, err := http.Get(s.URL + "/.well-known/oauth-protected-resource" + path)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Resource string
			Servers  []string `json:"authorization_servers"`
			Scopes   []string `json:"scopes_supported"`
		}
		err = json.NewDecoder(resp.Body).Decode(&doc)
		_ = resp.Body.Close()
		if err != nil || doc.Resource != resource || len(doc.Servers) != 1 || doc.Servers[0] != "https://gw.example" || strings.Join(doc.Scopes, " ") != "chat:read chat:write" {
			t.Errorf("%q: %+v %v", path, doc, err)
		}
	}
}

func TestGet(t *testing.T) {
	t.Parallel()
	url := start(t, "")
	for accept, want := range map[string]int{"": 200, "*/*": 200, "application/json": 200, "text/html": 200,
		"text/event-stream": 405, "application/json, text/event-stream": 405} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", accept)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var v struct {
			Jsonrpc string
			Result  struct{ ProtocolVersion string }
		}
		err = json.NewDecoder(resp.Body).Decode(&v)
		resp.Body.Close()
		if resp.StatusCode != want || err != nil || want == 200 && (v.Jsonrpc != "2.0" || v.Result.ProtocolVersion == "") ||
			want == 405 && resp.Header.Get("Allow") != "POST" {
			t.Errorf("%q: %d %v %+v", accept, resp.StatusCode, err, v)
		}
	}
}
