package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/host/wasmtest"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/filters/policy"
	"sluice.dev/sluice/filters/x402"
)

var (
	secret = [32]byte{1, 2, 3}
	key    = apikey.FormatKey(7, [apikey.SecretBytes]byte{7})
)

func edgePolicy() []byte {
	p := &policy.Policy{
		DocsBase: "http://gw", Anonymous: 50, Classes: []string{"default"},
		Plans: []policy.Plan{
			{Number: 1, Name: "small", Limits: []policy.Limit{{PerMinute: 3}}}, {Number: 2, Name: "roomy", Limits: []policy.Limit{{PerMinute: 1000}}},
		},
		Issuers:    []policy.Issuer{{Name: issuer, Audience: issuer, Own: true, ScopeClaim: "scopes", AccountClaim: "account"}},
		Payment:    x402.Terms{Network: "base-sepolia", Asset: payTo, PayTo: payTo, Name: "USDC", Version: "2", Seconds: 60},
		KeyHeaders: []string{"x-api-key"},
		Scopes:     []policy.Scope{{Bit: 0, Name: "*"}, {Bit: 1, Name: "streams:read"}},
		Routes: []policy.Route{
			{Name: "streams.list", Product: "media", Auth: policy.AuthKey, Scope: "streams:read", Grants: keytable.Scopes{}.With(0).With(1)},
			{Name: "streams.get", Product: "other", Auth: policy.AuthKey | policy.AuthToken, Scope: "streams:read", Grants: keytable.Scopes{}.With(0).With(1)},
			{Name: "clips.create", Auth: policy.AuthKey, Scope: "clips:write", Grants: keytable.Scopes{}.With(0)},
			{Name: "clips.sold", Product: "media", Auth: policy.AuthKey, Price: 10000},
			{Name: "health", Auth: policy.AuthNone},
			{Name: "notes.create", Revision: "1", Auth: policy.AuthNone, BodyLimit: 10},
			{Name: "rpc", Revision: "1 POST grpc", Product: "calls", Auth: policy.AuthKey, Scope: "rpc:call", Grants: keytable.Scopes{}.With(0)},
			{Name: "rpc.open", Revision: "1 POST grpc", Product: "calls", Auth: policy.AuthNone},
			{Name: "unmapped", Deny: decision.RouteNotMapped},
			{Name: "shadow.scope", Product: "media", Auth: policy.AuthKey, Scope: "clips:write", Shadow: policy.ShadowScope, BodyLimit: 10},
			{Name: "shadow.limit", Product: "media", Auth: policy.AuthKey, Class: policy.ShadowClass},
		},
	}
	p.AddShadows()
	return p.Encode()
}

// load puts records into shared data as keysync does.
func load(records ...keytable.Record) {
	p := keytable.Page{Epoch: 1, Hi: keytable.Buckets - 1}
	for _, r := range records {
		p.Records = r.Append(p.Records)
	}
	shared := wasmhost.Shared{}
	st := shared.State().Apply(p, shared)
	st.Ready = true
	shared.SetState(st)
	wasmhost.DefineRevision().Move()
}

func keyRecord() keytable.Record {
	return keytable.Record{Tag: keytable.TagOfKey(apikey.Hash(key)), Kind: keytable.KindKey, ID: 7, Account: 9, Plan: 1,
		Scopes: keytable.Scopes{}.With(1)}
}

func secretRecord() keytable.Record {
	return keytable.Record{Tag: keytable.TagOfSecret(edgeapi.IdentitySecret), Kind: keytable.KindSecret, Secret: secret}
}

// told is what a product makes of a value.
func told(product, value string, now int64) (identityheader.Caller, error) {
	return identityheader.VerifyFor([][]byte{identityheader.ProductSecret(secret[:], product)}, product, value, now)
}

func both(t *testing.T, body func(*testing.T, proxytest.HostEmulator)) {
	t.Helper()
	wasmtest.Both(t, "edge", &vm{}, edgePolicy(), func(t *testing.T, h proxytest.HostEmulator) {
		if s := h.StartPlugin(); s != types.OnPluginStartStatusOK {
			t.Fatal(s, h.GetCriticalLogs())
		}
		body(t, h)
	})
}

// reply is what became of a request.
type reply struct {
	status   uint32 // 0: it passed
	body     string
	request  map[string]string
	response map[string]string
}

func send(t *testing.T, h proxytest.HostEmulator, route string, headers ...[2]string) reply {
	t.Helper()
	set(t, h, []string{"xds", "route_name"}, route)
	set(t, h, []string{"source", "address"}, "192.0.2.1:1234")
	id := h.InitializeHttpContext()
	defer h.CompleteHttpContext(id)
	all := append(headers[:len(headers):len(headers)], [][2]string{{":path", "/v1/x"}, {":method", "GET"}, {"x-request-id", "req-1"}}...)
	action := h.CallOnRequestHeaders(id, all, true)
	r := reply{request: toMap(h.GetCurrentRequestHeaders(id))}
	response := [][2]string{{":status", "200"}, {"x-ratelimit-limit", "from upstream"}}
	if local := h.GetSentLocalResponse(id); local != nil {
		r.status, r.body, response = local.StatusCode, string(local.Data), local.Headers
	}
	if (r.status == 0) != (action == types.ActionContinue) {
		t.Fatalf("action %v with status %d", action, r.status)
	}
	h.CallOnResponseHeaders(id, response, false)
	r.response = toMap(h.GetCurrentResponseHeaders(id))
	return r
}

func set(t *testing.T, h proxytest.HostEmulator, path []string, v string) {
	t.Helper()
	if err := h.SetProperty(path, []byte(v)); err != nil {
		t.Fatal(err)
	}
}

func toMap(hs [][2]string) map[string]string {
	m := map[string]string{}
	for _, h := range hs {
		m[h[0]] = h[1]
	}
	return m
}

func bearer(k string) [2]string { return [2]string{"authorization", "Bearer " + k} }

func TestKeysInAHeaderAndOfAnotherSystem(t *testing.T) {
	const foreign = "a-key-of-another-system"
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		imported := keyRecord()
		imported.Tag, imported.ID, imported.Account = apikey.TagOfImported(foreign), 8, 10
		load(keyRecord(), secretRecord(), imported)
		if r := send(t, h, "streams.list", bearer(foreign)); r.status != 401 {
			t.Errorf("nobody has imported any: %d", r.status)
		}
		load(keyRecord(), secretRecord(), imported, keytable.Record{Tag: keytable.TagOfImports(), Kind: keytable.KindImports})
		for name, header := range map[string][2]string{"imported": bearer(foreign), "in a header": {"x-api-key", foreign}, "ours, in a header": {"x-api-key", key}} {
			r := send(t, h, "streams.list", header)
			if r.status != 0 {
				t.Fatal(name, r.status, r.body)
			}
			c, err := told("media", r.request[identityheader.Header], signedAt(t, r.request[identityheader.Header]))
			want := map[bool]uint64{true: 9, false: 10}[strings.HasPrefix(name, "ours")]
			if err != nil || c.Account != keytable.FormatID("acct_", want) {
				t.Errorf("%s: %+v %v", name, c, err)
			}
		}
		if r := send(t, h, "streams.list", bearer(key), [2]string{"x-api-key", foreign}); r.status != 400 || !strings.Contains(r.body, "one credential") {
			t.Errorf("two credentials: %d %s", r.status, r.body)
		}
	})
}

func TestGoodKeyReachesTheProductWithItsIdentity(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		load(keyRecord(), secretRecord())
		r := send(t, h, "streams.list", bearer(key), [2]string{identityheader.Header, "forged"})
		if r.status != 0 {
			t.Fatal(r.status, r.body)
		}
		c, err := told("media", r.request[identityheader.Header], signedAt(t, r.request[identityheader.Header]))
		want := identityheader.Caller{Account: keytable.FormatID("acct_", 9), Key: keytable.FormatID("key_", 7), Plan: "small", Scopes: []string{"streams:read"}}
		if err != nil || fmt.Sprint(c) != fmt.Sprint(want) {
			t.Fatalf("%+v %v, want %+v", c, err, want)
		}
		if r.response["x-ratelimit-limit"] != "3" || r.response["x-ratelimit-remaining"] != "2" || r.response["ratelimit-policy"] != `"default";q=3;w=60` || !strings.HasPrefix(r.response["ratelimit"], `"default";r=2;t=`) {
			t.Fatalf("%v", r.response)
		}
	})
}

// signedAt reads the time of signing from the header: the test host of the
// module has a clock of its own.
func signedAt(t *testing.T, header string) int64 {
	t.Helper()
	_, rest, _ := strings.Cut(header, ";e=")
	until, _, _ := strings.Cut(rest, ";")
	n, err := strconv.ParseInt(until, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n - identityheader.Lifetime
}

func TestRefusals(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		load(keyRecord(), secretRecord())
		unknown := apikey.FormatKey(8, [apikey.SecretBytes]byte{8})
		cases := []struct {
			route   string
			headers [][2]string
			status  uint32
			code    decision.Code
			says    string // in details; empty: there are none
		}{
			{"streams.list", nil, 401, decision.AuthRequired, "[{Authorization is missing Authorization: Bearer <API key>, or the API key alone in x-api-key}]"},
			{"streams.get", nil, 401, decision.AuthRequired, "[{Authorization is missing Authorization: Bearer <API key or token>, or the API key alone in x-api-key}]"},
			{"streams.list", [][2]string{{"authorization", "Basic YTpi"}}, 401, decision.InvalidKey, "[{Authorization has the scheme Basic, which is not read here Authorization: Bearer <API key>}]"},
			{"streams.list", [][2]string{bearer("slk_short")}, 401, decision.InvalidKey, "[{key is too short: its end is missing the whole text of a key: slk_ and 52 more characters}]"},
			{"streams.list", [][2]string{bearer(unknown)}, 401, decision.InvalidKey, ""},
			{"clips.create", [][2]string{bearer(key)}, 403, decision.ScopeMissing, "[{scope is not granted to this credential clips:write}]"},
			{"unmapped", nil, 403, decision.RouteNotMapped, ""},
			{"unmapped", [][2]string{bearer(key)}, 403, decision.RouteNotMapped, ""},
			{"not in the policy", [][2]string{bearer(key)}, 503, decision.EdgeNotReady, ""},
		}
		for _, c := range cases {
			r := send(t, h, c.route, c.headers...)
			var e struct {
				Error struct {
					Code, Message, Request_ID, Documentation_URL string
					Details                                      []decision.Detail
				}
			}
			if err := json.Unmarshal([]byte(r.body), &e); err != nil {
				t.Fatal(err, r.body)
			}
			if says := fmt.Sprint(e.Error.Details); says != c.says && says+c.says != "[]" {
				t.Errorf("%s: %s, want %s", c.route, says, c.says)
			}
			if r.status != c.status || e.Error.Code != string(c.code) || e.Error.Request_ID != "req-1" || e.Error.Message == "" {
				t.Errorf("%s: %d %s", c.route, r.status, r.body)
			}
			if r.response["x-ratelimit-limit"] == "" || r.response["x-ratelimit-window"] != "60" || r.response["ratelimit"] == "" || (r.status == 503) != (r.response["retry-after"] != "") {
				t.Errorf("%s: %v", c.route, r.response)
			}
		}
	})
}

func TestPublicRouteGetsNoIdentity(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		r := send(t, h, "health", [2]string{identityheader.Header, "forged"})
		if v, there := r.request[identityheader.Header]; r.status != 0 || there {
			t.Fatalf("%d, identity %q", r.status, v)
		}
	})
}

func TestFullWindowIs429WithRetryAfter(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		load(keyRecord(), secretRecord())
		for range 3 {
			if r := send(t, h, "streams.list", bearer(key)); r.status != 0 || r.response["retry-after"] != "" {
				t.Fatal(r)
			}
		}
		r := send(t, h, "streams.list", bearer(key))
		if r.status != 429 || r.response["retry-after"] == "" || r.response["x-ratelimit-remaining"] != "0" || !strings.Contains(r.body, "rate_limit_exceeded") {
			t.Fatalf("%+v", r)
		}
		const says = `"details":[{"field":"account","issue":"may make 3 requests in 60 seconds in the class default","expected":"another try in `
		if !strings.Contains(r.body, says+r.response["retry-after"]+" second") {
			t.Errorf("%s", r.body)
		}
		if noted := r.request[identityheader.Header]; !strings.Contains(noted, ";f=account;i=may make 3 requests in 60 seconds in the class default;x=another try in ") {
			t.Errorf("the request log is told %s", noted)
		}
	})
}

func TestClosedUntilItKnows(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		if r := send(t, h, "streams.list", bearer(key)); r.status != 503 || r.response["retry-after"] != "1" {
			t.Fatalf("no records: %+v", r)
		}
		load(keyRecord())
		if r := send(t, h, "streams.list", bearer(key)); r.status != 503 {
			t.Fatalf("no secret to sign with: %+v", r)
		}
		load(secretRecord())
		if r := send(t, h, "streams.list", bearer(key)); r.status != 0 {
			t.Fatalf("all there: %+v", r)
		}
	})
}

func TestRevokedKeyStops(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		load(keyRecord(), secretRecord())
		if r := send(t, h, "streams.list", bearer(key)); r.status != 0 {
			t.Fatal(r)
		}
		load(keytable.Record{Tag: keyRecord().Tag})
		if r := send(t, h, "streams.list", bearer(key)); r.status != 401 {
			t.Fatal(r)
		}
	})
}

func TestChangedKeyGetsANewIdentity(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		load(keyRecord(), secretRecord())
		before := send(t, h, "streams.list", bearer(key)).request[identityheader.Header]
		again := send(t, h, "streams.list", bearer(key)).request[identityheader.Header]
		admin := keyRecord()
		admin.Scopes = admin.Scopes.With(0)
		load(admin)
		after := send(t, h, "streams.list", bearer(key)).request[identityheader.Header]
		if before == "" || before != again || !strings.Contains(after, "s=*,streams:read;") {
			t.Fatalf("%s\n%s\n%s", before, again, after)
		}
	})
}

func TestHeapIsShown(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		h.Tick()
		if v, err := h.GetGaugeMetric("sluice_edge_heap_bytes"); err != nil || v == 0 {
			t.Fatal(v, err)
		}
		h.Tick()
		if v, err := h.GetGaugeMetric("sluice_edge_heap_bytes"); err != nil || v > 1<<30 {
			t.Fatal(v, err)
		}
	})
}

func TestBadPolicyFailsThePush(t *testing.T) {
	wasmtest.Both(t, "edge", &vm{}, []byte("not a policy"), func(t *testing.T, h proxytest.HostEmulator) {
		if s := h.StartPlugin(); s != types.OnPluginStartStatusFailed {
			t.Fatal(s)
		}
	})
}
