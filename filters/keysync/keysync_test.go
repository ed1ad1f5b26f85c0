package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/host/wasmtest"
)

var ok = [][2]string{{":status", "200"}}

// host is the test's Envoy. It notes each request when it is made: the module's
// memory, in which its headers are, is used again later.
type host struct {
	proxytest.HostEmulator
	made []call
	all  int
}

// call is a request that was made.
type call struct {
	id      uint32
	headers map[string]string
	body    []byte
}

func (h *host) Tick() {
	h.HostEmulator.Tick()
	h.note()
}

func (h *host) answer(id uint32, body []byte) {
	h.CallOnHttpCallResponse(id, ok, nil, body)
	h.note()
}

func (h *host) note() {
	list := h.GetCalloutAttributesFromContext(proxytest.PluginContextID)
	for _, c := range list[h.all:] {
		m := map[string]string{}
		for _, kv := range c.Headers {
			m[strings.Clone(kv[0])] = strings.Clone(kv[1])
		}
		h.made = append(h.made, call{c.CalloutID, m, bytes.Clone(c.Body)})
	}
	h.all = len(list)
}

// to returns the n requests that were made to paths that begin so.
func (h *host) to(t *testing.T, path string, n int) (list []call) {
	t.Helper()
	for _, c := range h.made {
		if strings.HasPrefix(c.headers[":path"], path) {
			list = append(list, c)
		}
	}
	if len(list) != n {
		t.Fatalf("%d requests to %s were made, want %d", len(list), path, n)
	}
	return list
}

func both(t *testing.T, body func(*testing.T, *host)) {
	t.Helper()
	wasmtest.Both(t, "keysync", &vm{}, []byte(`{"cluster":"feed","edge":"e1","token":"t0"}`), func(t *testing.T, h proxytest.HostEmulator) {
		if s := h.StartPlugin(); s != types.OnPluginStartStatusOK {
			t.Fatal(s)
		}
		body(t, &host{HostEmulator: h})
	})
}

// asked returns the id and path of the n-th request for records, from 1.
func asked(t *testing.T, h *host, n int) (id uint32, path string) {
	t.Helper()
	c := h.to(t, edgeapi.RecordsPath, n)[n-1]
	return c.id, c.headers[":path"]
}

func record(first byte) keytable.Record {
	return keytable.Record{Tag: keytable.Tag{first}, Kind: keytable.KindKey, ID: uint64(first)}
}

func page(p keytable.Page, records ...keytable.Record) []byte {
	for _, r := range records {
		p.Records = r.Append(p.Records)
	}
	return p.Append(nil)
}

func has(first byte) bool {
	_, ok := wasmhost.Shared{}.Record(keytable.Tag{first})
	return ok
}

// TestPagesMoveTheRevision: workers would go on with what they remember.
func TestPagesMoveTheRevision(t *testing.T) {
	both(t, func(t *testing.T, h *host) {
		h.Tick()
		for n := range uint64(3) {
			if moved, err := h.GetCounterMetric("sluice_records_revision"); err != nil || moved != n {
				t.Fatalf("after %d pages: %d %v", n, moved, err)
			}
			id, _ := asked(t, h, int(n)+1)
			h.answer(id, page(keytable.Page{Last: true, Epoch: 5, Position: n}, record(byte(n))))
		}
	})
}

func TestSnapshotThenChanges(t *testing.T) {
	both(t, func(t *testing.T, h *host) {
		h.Tick()
		id, path := asked(t, h, 1)
		if path != edgeapi.RecordsPath+"?epoch=0&position=0&wait=25" {
			t.Fatal(path)
		}
		half := record(1).Tag.Bucket()
		h.answer(id, page(keytable.Page{Snapshot: true, Epoch: 5, Position: 70, Hi: half, Cursor: record(1).Tag}, record(1)))
		if !has(1) || (wasmhost.Shared{}).Ready() {
			t.Fatal("after the first page: it is there, but more is to come")
		}
		id, path = asked(t, h, 2)
		if !strings.Contains(path, "epoch=5&position=70&cursor=01") {
			t.Fatal(path)
		}
		h.answer(id, page(keytable.Page{Snapshot: true, Last: true, Epoch: 5, Position: 70, Lo: half + 1, Hi: keytable.Buckets - 1}, record(2)))
		id, path = asked(t, h, 3)
		if !(wasmhost.Shared{}).Ready() || path != edgeapi.RecordsPath+"?epoch=5&position=70&wait=25" {
			t.Fatal(path)
		}
		h.answer(id, page(keytable.Page{Last: true, Epoch: 5, Position: 72}, keytable.Record{Tag: record(1).Tag}, record(3)))
		if has(1) || !has(2) || !has(3) {
			t.Fatal("one revoked, one kept, one new")
		}
		if _, path = asked(t, h, 4); !strings.Contains(path, "position=72") {
			t.Fatal(path)
		}
	})
}

// Whatever the feed answers, the records at hand stay, and the reader asks again.
func TestBadAnswersChangeNothing(t *testing.T) {
	both(t, func(t *testing.T, h *host) {
		h.Tick()
		id, _ := asked(t, h, 1)
		h.answer(id, page(keytable.Page{Snapshot: true, Last: true, Epoch: 5, Position: 1, Hi: keytable.Buckets - 1}, record(1)))
		good := page(keytable.Page{Epoch: 5, Position: 9, Hi: 1}, keytable.Record{Tag: record(1).Tag})
		bad := map[string][]byte{"nothing": nil, "an error page": []byte(`{"error":{}}`), "a page cut short": good[:len(good)-1]}
		n := 2
		for name, body := range bad {
			id, path := asked(t, h, n)
			h.answer(id, body)
			if !has(1) || !strings.Contains(path, "position=1&") {
				t.Fatalf("%s: %s", name, path)
			}
			h.Tick()
			n++
		}
		if logs := h.GetWarnLogs(); len(logs) != 2 { // loaded, and one warning for all failures in a row
			t.Fatal(logs)
		}
	})
}

func TestOneRequestAtATime(t *testing.T) {
	both(t, func(t *testing.T, h *host) {
		for range 5 {
			h.Tick()
		}
		asked(t, h, 1)
	})
}

func TestConfigurationMustNameACluster(t *testing.T) {
	for _, c := range []string{"", "{}", "x"} {
		wasmtest.Both(t, "keysync", &vm{}, []byte(c), func(t *testing.T, h proxytest.HostEmulator) {
			if s := h.StartPlugin(); s != types.OnPluginStartStatusFailed {
				t.Fatalf("%q: %v", c, s)
			}
		})
	}
}
