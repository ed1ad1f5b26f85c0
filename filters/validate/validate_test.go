package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/host/wasmtest"
	"sluice.dev/sluice/filters/schema"
	"sluice.dev/sluice/filters/schema/compile"
)

const order = `{"type":"object","required":["id","items"],"additionalProperties":false,"properties":{"id":{"type":"integer","minimum":1},
	"note":{"type":"string","maxLength":5,"pattern":"^[a-zé]*$"},"when":{"format":"date-time"},"price":{"type":"number","multipleOf":0.01},
	"items":{"type":"array","minItems":1,"items":{"type":"object","properties":{"sku":{"type":"string"},"n":{"type":"integer"}},"required":["sku"]}}}}`

// configured is a set of one route named r.
func configured(t *testing.T, r compile.Request) []byte {
	t.Helper()
	table, faults := compile.Table(r, nil)
	if faults != nil {
		t.Fatal(faults)
	}
	return schema.AppendSet(schema.AppendSet(schema.AppendSet(nil, []byte("https://gw")), []byte("r")), table)
}

// orders takes an order, and parameters of each kind.
var orders = compile.Request{
	Parameters: []compile.Parameter{
		{Name: "shop", In: compile.Path, Required: true, Segment: 1, Schema: `{"type":"string","format":"uuid"}`},
		{Name: "limit", In: compile.Query, Explode: true, Between: ',', Schema: `{"type":"integer","minimum":1,"maximum":50}`},
		{Name: "tag", In: compile.Query, Explode: true, Between: ',', Schema: `{"type":"array","items":{"type":"string","minLength":2},"maxItems":2}`},
		{Name: "ids", In: compile.Query, Between: ',', Schema: `{"type":"array","items":{"type":"integer"},"uniqueItems":true}`},
		{Name: "full text", In: compile.Query, Required: true, Between: ',', Schema: `{"enum":[true,false]}`},
		{Name: "x-depth", In: compile.Header, Between: ',', Schema: `{"type":["integer","string"],"enum":[1,2,"all"]}`},
		{Name: "x-list", In: compile.Header, Between: ',', Schema: `{"type":"array","items":{"enum":["a","b"]}}`},
	},
	Body: &compile.Body{Required: true, Contents: []compile.Content{
		{Type: "application/json", Schema: order}, {Type: "text/plain"}, {Type: "image/*"}}},
}

func both(t *testing.T, body func(*testing.T, proxytest.HostEmulator)) {
	t.Helper()
	wasmtest.Both(t, "validate", &vm{}, configured(t, orders), func(t *testing.T, h proxytest.HostEmulator) {
		if s := h.StartPlugin(); s != types.OnPluginStartStatusOK {
			t.Fatal(s, h.GetCriticalLogs())
		}
		if err := h.SetProperty([]string{"xds", "route_name"}, []byte("r")); err != nil {
			t.Fatal(err)
		}
		body(t, h)
	})
}

const goodPath = "/shops/0d3f1f0e-5a3c-4a5e-8d3c-1a2b3c4d5e6f/orders?full+text=true"

// answer is what became of a request: a status and the bad fields; 0: it passed.
func send(t *testing.T, h proxytest.HostEmulator, path string, headers [][2]string, pieces ...string) string {
	t.Helper()
	id := h.InitializeHttpContext()
	defer h.CompleteHttpContext(id)
	action := h.CallOnRequestHeaders(id, append([][2]string{{":method", "POST"}, {":path", path}, {"x-request-id", "req-1"}}, headers...), len(pieces) == 0)
	for i, p := range pieces {
		if h.GetSentLocalResponse(id) != nil {
			break
		}
		action = h.CallOnRequestBody(id, []byte(p), i == len(pieces)-1)
	}
	local := h.GetSentLocalResponse(id)
	if local == nil {
		if action != types.ActionContinue {
			t.Fatal("the request is stuck")
		}
		if got := string(h.GetCurrentRequestBody(id)); got != strings.Join(pieces, "") {
			t.Errorf("the body became %s", got)
		}
		return "passed"
	}
	if action != types.ActionPause || len(local.Data) > 16<<10 {
		t.Fatal("a request that was answered went on, or the answer has", len(local.Data), "bytes")
	}
	var e struct {
		Error struct {
			Code, Request_ID, Documentation_URL string
			Details                             []struct{ Field, Issue, Expected string }
		}
	}
	if err := json.Unmarshal(local.Data, &e); err != nil {
		t.Fatal(err, string(local.Data))
	}
	if e.Error.Request_ID != "req-1" || e.Error.Documentation_URL != "https://gw/docs/errors/"+e.Error.Code {
		t.Errorf("%s", local.Data)
	}
	text := fmt.Sprint(local.StatusCode)
	for _, d := range e.Error.Details {
		text += "; " + d.Field + " " + d.Issue
		if local.StatusCode == 415 {
			text += ": " + d.Expected
		}
	}
	return text
}

var asJSON = [][2]string{{"content-type", "application/json; charset=utf-8"}}

const goodBody = `{"id":1,"items":[{"sku":"a"}],"note":"caf\u00e9","when":"2026-11-22T13:00:00Z","price":19.99}`

func TestRequests(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		for _, c := range []struct {
			name, path string
			headers    [][2]string
			pieces     []string
			want       string
		}{
			{"good", goodPath + "&limit=50&tag=ab&tag=c%64&ids=1,2&other=x", append(asJSON, [2]string{"x-depth", "all"}, [2]string{"x-list", "a, b"}), []string{goodBody}, "passed"},
			{"in pieces", goodPath, append(asJSON, [2]string{"x-depth", "2"}), []string{goodBody[:7], goodBody[7:30], goodBody[30:]}, "passed"},
			{"not looked at", goodPath, [][2]string{{"content-type", "image/png"}}, []string{"\x00\xff"}, "passed"},
			{"bad parameters", "/shops/7/orders?limit=51&tag=a&ids=1,x&limit2=3", append(asJSON, [2]string{"x-depth", "3"}, [2]string{"x-list", "a,c"}), []string{goodBody},
				"400; path.shop has not the format that it must have; query.limit is too large; query.ids[1] is of another type; query.tag[0] is too short; query.full text is missing; header.x-list[1] is not one of the values that it may have; header.x-depth is not one of the values that it may have"},
			{"twice", goodPath + "&limit=1&limit=2", asJSON, []string{goodBody}, "400; query.limit is given several times"},
			{"no number", goodPath + "&limit=1e", asJSON, []string{goodBody}, "400; query.limit is of another type"},
			{"escape", goodPath + "&tag=%zz", asJSON, []string{goodBody}, "400; query.tag is not percent-encoded UTF-8"},
			{"bad body", goodPath, asJSON, []string{`{"id":1.5,"note":"abcdef","items":[{"sku":"a"},{"sku":7,"n":1.0},{"n":"1"}],"more":1,"price":1.999}`},
				"400; body.id is of another type; body.note is too long; body.items[1].sku is of another type; body.items[2].n is of another type; body.items[2].sku is missing; body.more is not allowed here; body.price is not a multiple"},
			{"both", goodPath + "&limit=0", asJSON, []string{`{"id":0,"items":[]}`}, "400; query.limit is too small; body.id is too small; body.items has too few elements"},
			{"no JSON", goodPath, asJSON, []string{`{"id":"x",}`}, "400; body unexpected byte"},
			{"twice in the body", goodPath, asJSON, []string{`{"id":1,"items":[{"sku":"a","s\u006bu":"b"}]}`}, "400; body.items[0].sku is given twice"},
			{"no body", goodPath, asJSON, nil, "400; body is missing"},
			{"empty body", goodPath, append(asJSON, [2]string{"content-length", "0"}), []string{""}, "400; body is missing"},
			{"no type", goodPath, nil, []string{goodBody}, "415; Content-Type is missing: application/json, text/plain, image/*"},
			{"another type", goodPath, [][2]string{{"content-type", "application/xml"}}, []string{goodBody}, "415; Content-Type is application/xml: application/json, text/plain, image/*"},
			{"compressed", goodPath, append(asJSON, [2]string{"content-encoding", "gzip"}), []string{goodBody}, "415; Content-Encoding is gzip: no Content-Encoding, or identity"},
		} {
			if got := send(t, h, c.path, c.headers, c.pieces...); got != c.want {
				t.Errorf("%s:\n got  %s\n want %s", c.name, got, c.want)
			}
		}
	})
}

// An answer names 20 fields at most and has at most 16 KiB, whatever the names.
func TestManyBadFields(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		for _, name := range []string{"a", strings.Repeat("n", 5000), strings.Repeat("ü", 300), strings.Repeat(`\u0001`, 200), strings.Repeat(`\"`, 200)} {
			var b strings.Builder
			for i := range 200 {
				fmt.Fprintf(&b, `,"%d%s":1`, i, name)
			}
			got := send(t, h, goodPath, asJSON, `{"id":1,"items":[{"sku":"a"}]`+b.String()+"}")
			if !strings.HasPrefix(got, "400; body.0") || !strings.HasSuffix(got, "; details has no room for all that is wrong") || strings.Count(got, ";") > 20 {
				t.Errorf("%.40s: %s", name, got)
			}
		}
	})
}

// A body with trailers is checked as others are.
func TestTrailers(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		for body, want := range map[string]uint32{goodBody: 0, `{}`: 400} {
			id := h.InitializeHttpContext()
			h.CallOnRequestHeaders(id, append([][2]string{{":path", goodPath}}, asJSON...), false)
			if a := h.CallOnRequestBody(id, []byte(body), false); a != types.ActionPause {
				t.Fatal("the body went on before its end")
			}
			action, got := h.CallOnRequestTrailers(id, [][2]string{{"x", "y"}}), uint32(0)
			if local := h.GetSentLocalResponse(id); local != nil {
				got = local.StatusCode
			}
			if got != want || (action == types.ActionContinue) != (want == 0) {
				t.Errorf("%s: %d, %v", body, got, action)
			}
			h.CompleteHttpContext(id)
		}
	})
}

// Bodies that would take much work or memory are refused, not checked for long.
func TestExpensiveBodies(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		var names strings.Builder
		for i := range schema.MaxMarks + 1 {
			fmt.Fprintf(&names, `,"%d":1`, i)
		}
		for name, body := range map[string]string{
			"body nested too deeply":                               `{"note":` + strings.Repeat("[", schema.MaxDepth+1),
			"body has too many members or elements that must diff": `{"id":1` + names.String() + `}`,
		} {
			if got := send(t, h, goodPath, asJSON, body); !strings.HasPrefix(got, "400; "+name) {
				t.Errorf("%s: %s", name, got)
			}
		}
	})
}

// A route without a table is refused: it was not checked.
func TestUnknownRoute(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		if err := h.SetProperty([]string{"xds", "route_name"}, []byte("other")); err != nil {
			t.Fatal(err)
		}
		if got := send(t, h, goodPath, asJSON, goodBody); got != "503" {
			t.Error(got)
		}
	})
}

func TestBadConfiguration(t *testing.T) {
	for _, bad := range []string{"", "abc", string(schema.AppendSet(schema.AppendSet(nil, nil), []byte("key"))), string(schema.AppendSet(nil, nil)) + "\x02\x00\x00\x00a"} {
		wasmtest.Both(t, "validate", &vm{}, []byte(bad), func(t *testing.T, h proxytest.HostEmulator) {
			if s := h.StartPlugin(); s != types.OnPluginStartStatusFailed {
				t.Errorf("%q is accepted", bad)
			}
		})
	}
}
