package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/host/wasmtest"
	"sluice.dev/sluice/filters/policy"
)

// socketPolicy has routes whose connections are watched: two at once for an account.
func socketPolicy() []byte {
	return (&policy.Policy{
		DocsBase: "http://gw", Anonymous: 50, Classes: []string{"default"},
		Plans:  []policy.Plan{{Number: 1, Name: "small", Limits: []policy.Limit{{PerMinute: 1000, Connections: 2}}}},
		Scopes: []policy.Scope{{Bit: 0, Name: "*"}, {Bit: 1, Name: "streams:read"}},
		Routes: []policy.Route{
			{Name: "socket", Product: "media", Auth: policy.AuthKey, Scope: "streams:read", Grants: keytable.Scopes{}.With(0).With(1), Stream: policy.Upgrades},
			{Name: "events", Product: "media", Auth: policy.AuthKey, Stream: policy.Watched},
			{Name: "open", Product: "media", Auth: policy.AuthNone, Stream: policy.Upgrades},
		},
	}).Encode()
}

func socketTest(t *testing.T, body func(*testing.T, proxytest.HostEmulator)) {
	t.Helper()
	wasmtest.Both(t, "edge", &vm{}, socketPolicy(), func(t *testing.T, h proxytest.HostEmulator) {
		streams = openStreams{}
		if s := h.StartPlugin(); s != types.OnPluginStartStatusOK {
			t.Fatal(s, h.GetCriticalLogs())
		}
		load(keyRecord(), secretRecord())
		body(t, h)
	})
}

// open begins a request for a WebSocket that the product takes; status is what the client gets.
func open(t *testing.T, h proxytest.HostEmulator, route string, headers ...[2]string) (id uint32, status uint32) {
	t.Helper()
	set(t, h, []string{"xds", "route_name"}, route)
	set(t, h, []string{"source", "address"}, "192.0.2.9:1234")
	id = h.InitializeHttpContext()
	all := append([][2]string{{":path", "/v1/x"}, {":method", "GET"}, {"upgrade", "websocket"}, {"x-request-id", "r"}}, headers...)
	if h.CallOnRequestHeaders(id, all, false); h.GetSentLocalResponse(id) != nil {
		local := h.GetSentLocalResponse(id)
		h.CallOnResponseHeaders(id, local.Headers, false)
		h.CompleteHttpContext(id)
		return id, local.StatusCode
	}
	h.CallOnResponseHeaders(id, [][2]string{{":status", "101"}, {"sec-websocket-accept", "x"}}, false)
	return id, 101
}

func TestConnectionsOfAnAccount(t *testing.T) {
	socketTest(t, func(t *testing.T, h proxytest.HostEmulator) {
		first, status := open(t, h, "socket", bearer(key))
		_, second := open(t, h, "events", bearer(key))
		if status != 101 || second != 101 {
			t.Fatal(status, second)
		}
		if _, status := open(t, h, "socket", bearer(key)); status != 429 {
			t.Fatalf("the third: %d", status)
		}
		if _, status := open(t, h, "open"); status != 101 {
			t.Fatalf("of nobody known: %d", status)
		}
		h.CompleteHttpContext(first)
		if _, status := open(t, h, "socket", bearer(key)); status != 101 {
			t.Fatalf("in the place of the first: %d", status)
		}
	})
}

// The emulator of the WASM host does not follow proxy_set_effective_context; the end-to-end
// tests have Envoy do it.
func TestConnectionsEndWithTheirKeys(t *testing.T) {
	for name, end := range map[string]func() keytable.Record{
		"revoked": func() keytable.Record { return keytable.Record{Tag: keyRecord().Tag} },
		"unpaid":  func() keytable.Record { r := keyRecord(); r.Flags |= keytable.FlagUnpaid; return r },
		"expired": func() keytable.Record { r := keyRecord(); r.Expires = 1; return r },
		"no scope": func() keytable.Record {
			r := keyRecord()
			r.Scopes = keytable.Scopes{}
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, reset := proxytest.NewHostEmulator(proxytest.NewEmulatorOption().WithVMContext(&vm{}).WithPluginConfiguration(socketPolicy()))
			defer reset()
			streams = openStreams{}
			if s := h.StartPlugin(); s != types.OnPluginStartStatusOK {
				t.Fatal(s, h.GetCriticalLogs())
			}
			load(keyRecord(), secretRecord())
			id, status := open(t, h, "socket", bearer(key))
			if h.Tick(); status != 101 || h.GetSentLocalResponse(id) != nil {
				t.Fatalf("%d, then closed without cause", status)
			}
			load(end())
			streams.walked, streams.checked = time.Time{}, 0 // it is time to look
			if h.Tick(); h.GetSentLocalResponse(id) == nil {
				t.Fatal("it goes on")
			}
			h.CompleteHttpContext(id)
		})
	}
}

func TestCredentialsAmongProtocols(t *testing.T) {
	socketTest(t, func(t *testing.T, h proxytest.HostEmulator) {
		id, status := open(t, h, "socket", [2]string{"sec-websocket-protocol", "chat, sluice.bearer." + key})
		got := toMap(h.GetCurrentRequestHeaders(id))
		if status != 101 || got["sec-websocket-protocol"] != "chat" || strings.Contains(strings.Join([]string{got["authorization"], got["sec-websocket-key"]}, ""), key) {
			t.Fatalf("%d %v", status, got)
		}
		if len(got["sec-websocket-key"]) != 24 || toMap(h.GetCurrentResponseHeaders(id))["sec-websocket-accept"] != "" {
			t.Errorf("a client without a key: %v, %v", got, h.GetCurrentResponseHeaders(id))
		}
		h.CompleteHttpContext(id)
		if _, status := open(t, h, "events", [2]string{"sec-websocket-protocol", "sluice.bearer." + key}); status != 401 {
			t.Errorf("on a route without upgrades: %d", status)
		}
	})
}

// A connection counts as a request when it opens, and what it carries when that has passed.
func TestConnectionsAreCountedWhileTheyAreOpen(t *testing.T) {
	socketTest(t, func(t *testing.T, h proxytest.HostEmulator) {
		queue := keysync(t, h)
		id, _ := open(t, h, "socket", bearer(key))
		b, ok := takeUsage(t, h, queue)
		if !ok || len(b.Counts) != 1 || b.Counts[0].Requests != 1 || b.Counts[0].Class != 1 || b.Counts[0].Open != 0 {
			t.Fatalf("when it opens: %+v", b)
		}
		h.CallOnRequestBody(id, bytes.Repeat([]byte("a"), 70), false)
		h.CallOnResponseBody(id, bytes.Repeat([]byte("b"), 900), false)
		h.CompleteHttpContext(id)
		b, ok = takeUsage(t, h, queue)
		if !ok || len(b.Counts) != 1 || b.Counts[0].Requests != 0 || b.Counts[0].In != 70 || b.Counts[0].Out != 900 {
			t.Fatalf("at its end: %+v", b)
		}
	})
}

// What a worker does about ten thousand open connections at every tick, and when what is
// known of credentials has changed.
func BenchmarkTick10000Streams(b *testing.B) {
	for name, changed := range map[string]bool{"nothing new": false, "records changed": true} {
		b.Run(name, func(b *testing.B) {
			h, reset := proxytest.NewHostEmulator(proxytest.NewEmulatorOption().WithVMContext(&vm{}).WithPluginConfiguration(socketPolicy()))
			defer reset()
			h.StartPlugin()
			load(keyRecord(), secretRecord())
			p := &plugin{policy: policy.Parse(socketPolicy())}
			p.env.callers, p.env.revision = &p.callers, wasmhost.DefineRevision()
			caller := keyRecord()
			streams = openStreams{renewed: time.Now()}
			route, _ := p.policy.Route("socket")
			for range 10_000 {
				streams.list = append(streams.list, &stream{request: &request{plugin: p}, route: route, caller: &caller, opened: true, counted: time.Now()})
			}
			streams.revision = p.env.revision.Now()
			for b.Loop() {
				streams.walked = time.Time{}
				if changed {
					streams.revision, streams.checked = 0, 0
				}
				streams.tick(p, time.Now())
			}
		})
	}
}
