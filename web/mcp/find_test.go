package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"sluice.dev/sluice/filters/identityheader"
)

// crowded is a document of n kinds of things, each with a list, and one to be made.
func crowded(n int) string {
	paths := map[string]any{}
	ok := map[string]any{"description": "it", "content": map[string]any{"application/json": map[string]any{"schema": map[string]any{"type": "object",
		"properties": map[string]any{"data": map[string]any{"type": "array", "items": map[string]any{"type": "object", "properties": map[string]any{"id": map[string]any{"type": "string"}, "note": map[string]any{"type": "string"}}}}}}}}}
	for i := range n {
		kind := fmt.Sprintf("kind%02d", i)
		paths["/v1/"+kind] = map[string]any{
			"get": map[string]any{"operationId": "list" + strings.ToUpper(kind[:1]) + kind[1:], "summary": "List " + kind, "description": strings.Repeat("About it. ", 20),
				"security": []any{map[string]any{"key": []any{}}}, "x-sluice": map[string]any{"scope": kind + ":read"}, "responses": map[string]any{"200": ok},
				"parameters": []any{map[string]any{"name": "limit", "in": "query", "schema": map[string]any{"type": "integer"}}}},
			"post": map[string]any{"operationId": "create" + strings.ToUpper(kind[:1]) + kind[1:], "summary": "Make " + kind,
				"security": []any{map[string]any{"key": []any{}}}, "x-sluice": map[string]any{"scope": kind + ":write"}, "responses": map[string]any{"201": ok},
				"requestBody": map[string]any{"content": map[string]any{"application/json": map[string]any{"schema": map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}}}}}},
		}
	}
	b, err := json.Marshal(map[string]any{"paths": paths})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// scoped is what an edge does to requests of a key with scopes.
type scoped struct {
	scopes []string
	header http.Header
}

func (s scoped) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, v := range s.header {
		r.Header[name] = v
	}
	r.Header.Set(identityheader.Header, identityheader.Sign(secret, identityheader.Caller{Account: "acct_1", Key: "key_1", Scopes: s.scopes}, time.Now().Unix()))
	return http.DefaultTransport.RoundTrip(r)
}

// as connects a client with a key of these scopes. more stands behind the address.
func as(t *testing.T, b bed, more string, header http.Header, scopes ...string) *sdk.ClientSession {
	t.Helper()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: b.url + more, HTTPClient: &http.Client{Transport: scoped{scopes, header}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// names are those of the tools that are listed, and their bytes.
func names(t *testing.T, s *sdk.ClientSession) (list []string, size int) {
	t.Helper()
	res, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range res.Tools {
		list = append(list, tool.Name)
	}
	b, err := json.Marshal(res)
	if err != nil || res.CacheScope != "private" {
		t.Errorf("%v, for %q", err, res.CacheScope)
	}
	return list, len(b)
}

// Who has chosen nothing is shown what its credential can call, where that is little, and
// else what finds the others.
func TestWhichToolsAreListed(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	b.text(crowded(60), nil)
	chosen := http.Header{"X-Mcp-Toolsets": {" kind01, Kind02 "}, "X-Mcp-Readonly": {"true"}}
	for name, c := range map[string]struct {
		more   string
		header http.Header
		scopes []string
		want   string
		count  int
	}{
		"too much":                {"", nil, []string{"*"}, "search_tools call_tool", 2},
		"of one kind":             {"", nil, []string{"kind07:*"}, "listKind07 createKind07", 2},
		"for reading":             {"?readonly=1", nil, []string{"kind07:*"}, "listKind07", 1},
		"nothing":                 {"", nil, []string{"other:read"}, "", 0},
		"a set":                   {"?toolsets=kind01,kind02", nil, []string{"*"}, "listKind01 createKind02", 4},
		"a set, and the search":   {"?toolsets=kind01,search", nil, []string{"*"}, "listKind01 search_tools call_tool", 4},
		"a set by header":         {"", chosen, []string{"*"}, "listKind01 listKind02", 2},
		"the address comes first": {"?toolsets=kind03", chosen, []string{"*"}, "listKind03", 1},
		"a set beyond the scopes": {"?toolsets=kind01", nil, []string{"kind02:read"}, "", 0},
		"all":                     {"?toolsets=all", nil, []string{"kind02:read"}, "listKind59", 120},
	} {
		list, size := names(t, as(t, b, c.more, c.header, c.scopes...))
		for _, want := range strings.Fields(c.want) {
			if !slices.Contains(list, want) {
				t.Errorf("%s: no %s in %v", name, want, list)
			}
		}
		if len(list) != c.count || c.more == "" && size > 22<<10 {
			t.Errorf("%s: %d tools of %d bytes: %v", name, len(list), size, list)
		}
	}
	if list, _ := names(t, connect(t, b, "")); len(list) != 2 {
		t.Errorf("without a credential: %v", list)
	}
	if _, err := as(t, b, "?toolsets=knid01", nil, "*").ListTools(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "kind01") {
		t.Errorf("a set that is none: %v", err)
	}
	b.text(crowded(5), nil)
	if list, _ := names(t, connect(t, b, "")); len(list) != 10 {
		t.Errorf("a small API is listed whole: %v", list)
	}
}

// found is what search_tools answers.
type found struct {
	Tools []struct {
		Name   string
		Input  map[string]any `json:"input_schema"`
		Fields []string       `json:"answer_fields"`
	}
	More    []string
	Matches int
	Hint    string
	Beyond  []string `json:"beyond_your_scopes"`
}

func search(t *testing.T, s *sdk.ClientSession, arguments any) (f found) {
	t.Helper()
	text, structured, failed := run(t, s, "search_tools", arguments)
	if err := json.Unmarshal([]byte(text), &f); err != nil || failed || len(text) > 20<<10 {
		t.Fatalf("%d bytes, %v %v: %.300s", len(text), failed, err, text)
	}
	if !same(text, structured) {
		t.Errorf("the structured content is another: %.300s", structured)
	}
	return f
}

// same reports whether two texts are one value.
func same(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// A tool that is not listed is found by words, and called by call_tool or by its name.
func TestAToolIsFoundAndCalled(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	b.text(crowded(60), nil)
	s := as(t, b, "", nil, "*")
	f := search(t, s, map[string]any{"query": "add a kind42"})
	if len(f.Tools) != 5 || f.Tools[0].Name != "createKind42" || f.Tools[0].Input["type"] != "object" || !slices.Equal(f.Tools[0].Fields, []string{"data.id", "data.note"}) || len(f.More) != 40 {
		t.Errorf("%+v", f)
	}
	if f := search(t, s, map[string]any{"query": "kind", "limit": 1000}); f.Matches != 120 || len(f.Tools) > 20 {
		t.Errorf("%d tools of %d", len(f.Tools), f.Matches)
	}
	if f := search(t, s, map[string]any{"query": "xylophone"}); f.Matches > 0 || !strings.Contains(f.Hint, "kind00, kind01") {
		t.Errorf("%+v", f)
	}
	if f := search(t, s, map[string]any{"toolset": "kind07"}); len(f.Tools) > 0 || !slices.Equal(f.More, []string{"createKind07", "listKind07"}) {
		t.Errorf("%+v", f)
	}
	for _, arguments := range []any{map[string]any{"name": "x"}, `{"name":"x"}`} {
		if text, _, failed := run(t, s, "call_tool", map[string]any{"name": "createKind42", "arguments": arguments}); failed {
			t.Error(text)
		}
		if r, body := b.gateway.last(t); r.Method != "POST" || r.URL.Path != "/v1/kind42" || body != `{"name":"x"}` {
			t.Errorf("%s %s %s", r.Method, r.URL, body)
		}
	}
	if text, _, failed := run(t, s, "createKind42", map[string]any{"name": "y"}); failed {
		t.Errorf("by its name: %s", text)
	}
	if _, body := b.gateway.last(t); body != `{"name":"y"}` {
		t.Error(body)
	}
	few := as(t, b, "", nil, "kind01:read")
	if f := search(t, few, map[string]any{"query": "kind01"}); f.Matches != 1 || f.Tools[0].Name != "listKind01" || !slices.Equal(f.Beyond[:1], []string{"kind01:write"}) {
		t.Errorf("%+v", f)
	}
	reader := as(t, b, "?readonly=true", nil, "*")
	for tool, arguments := range map[string]any{"createKind42": map[string]any{"name": "x"}, "call_tool": map[string]any{"name": "createKind42", "arguments": map[string]any{}}} {
		if text, _, failed := run(t, reader, tool, arguments); !failed || !strings.Contains(text, "reading only") {
			t.Errorf("%s: %s", tool, text)
		}
	}
}

// What cannot be asked is told by field.
func TestQuestionsThatAreNone(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	s := as(t, b, "", nil, "*")
	for _, c := range []struct {
		tool, field string
		arguments   map[string]any
	}{
		{"search_tools", "arguments", map[string]any{"query": strings.Repeat("x", 401)}},
		{"search_tools", "arguments", map[string]any{"words": "x"}},
		{"search_tools", "toolset", map[string]any{"toolset": "none"}},
		{"call_tool", "name", map[string]any{"name": "none", "arguments": map[string]any{}}},
		{"call_tool", "name", map[string]any{"name": "call_tool", "arguments": map[string]any{}}},
		{"call_tool", "arguments", map[string]any{"name": 7}},
		{"call_tool", "id", map[string]any{"name": "getThing", "arguments": map[string]any{}}},
		{"call_tool", "arguments", map[string]any{"name": "getThing", "arguments": []int{1}}},
	} {
		if text, _, failed := run(t, s, c.tool, c.arguments); !failed || !strings.Contains(text, `"field":"`+c.field+`"`) {
			t.Errorf("%s %v: %v %s", c.tool, c.arguments, failed, text)
		}
	}
}

// An answer is cut to what was asked, and to what a model can read; what is missing is
// said in it.
func TestAnswersAreCut(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	b.text(crowded(2), nil)
	s := as(t, b, "", nil, "*")
	b.gateway.answer(200, `{"data":[`+strings.Repeat(`{"id":"a","note":"`+strings.Repeat("x", 300)+`"},`, 999)+`{"id":"b","note":""}],"next_cursor":"c"}`)
	text, structured, failed := run(t, s, "listKind01", nil)
	var got struct {
		Data []map[string]string
		Next string `json:"next_cursor"`
		Cut  struct {
			Lists map[string]struct{ Shown, Of int }
			Rest  string
		} `json:"_cut"`
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil || failed || len(text) > 40<<10 || !same(text, structured) {
		t.Fatalf("%d bytes, %v %v", len(text), failed, err)
	}
	if p := got.Cut.Lists["data"]; p.Of != 1000 || p.Shown != len(got.Data) || got.Next != "c" || got.Cut.Rest != fmt.Sprintf("To see the rest, call again with limit %d, and go on from page to page, or name the fields that you need in fields.", p.Shown) {
		t.Errorf("%+v", got.Cut)
	}
	text, _, _ = run(t, s, "call_tool", map[string]any{"name": "listKind01", "arguments": map[string]any{"fields": []string{"data.id", "data.nothing"}}})
	if !strings.HasPrefix(text, `{"data":[{"id":"a"},{"id":"a"},`) || !strings.HasSuffix(text, `{"id":"b"}],"_cut":{"not_in_answer":["data.nothing"]}}`) {
		t.Errorf("%.100s … %s", text, text[max(0, len(text)-100):])
	}
	if r, _ := b.gateway.last(t); r.URL.RawQuery != "" {
		t.Errorf("the gateway was asked for fields: %s", r.URL)
	}
	b.gateway.answer(200, `[`+strings.Repeat(`"`+strings.Repeat("x", 100)+`",`, 1000)+`"z"]`)
	res, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: "listKind01"})
	if err != nil || len(res.Content) != 2 || res.StructuredContent != nil || !strings.Contains(res.Content[1].(*sdk.TextContent).Text, `"of":1001`) {
		t.Errorf("%+v, %v", res, err)
	}
	b.gateway.answer(200, "no JSON")
	if text, structured, failed := run(t, s, "listKind01", nil); failed || text != "no JSON" || structured != "null" {
		t.Errorf("%s %s %v", text, structured, failed)
	}
}
