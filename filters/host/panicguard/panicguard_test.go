package panicguard

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/host/wasmtest"
)

// crashing is a filter whose callbacks end as the frame of one that crashed in
// phase does.
type crashing struct {
	types.DefaultVMContext
	types.DefaultPluginContext
	types.DefaultHttpContext
	phase    phase
	context  uint32
	verdicts []verdict
}

func (c *crashing) OnVMStart(int) types.OnVMStartStatus         { return types.OnVMStartStatusOK }
func (c *crashing) NewPluginContext(uint32) types.PluginContext { return c }
func (c *crashing) OnPluginStart(int) types.OnPluginStartStatus {
	Define("crashes")
	return types.OnPluginStartStatusOK
}
func (c *crashing) OnPluginDone() bool                           { return true }
func (c *crashing) NewHttpContext(uint32) types.HttpContext      { return c }
func (c *crashing) OnHttpRequestHeaders(int, bool) types.Action  { return c.crash() }
func (c *crashing) OnHttpResponseHeaders(int, bool) types.Action { return types.ActionContinue }
func (c *crashing) crash() types.Action {
	v := handleCrash(c.phase, c.context)
	c.verdicts = append(c.verdicts, v)
	return types.Action(max(v, 0))
}

func host(t *testing.T, c *crashing) proxytest.HostEmulator {
	t.Helper()
	crashesInRow, crashedRequests = 0, nil
	h, reset := proxytest.NewHostEmulator(proxytest.NewEmulatorOption().WithVMContext(c))
	t.Cleanup(reset)
	if h.StartVM() != types.OnVMStartStatusOK || h.StartPlugin() != types.OnPluginStartStatusOK {
		t.Fatal("the VM does not start")
	}
	return h
}

// A request that crashes is held and answered 503; what is not of a request
// answers nobody.
func TestCrashed(t *testing.T) {
	for _, c := range []struct {
		name   string
		phase  phase
		status uint32 // 0: no answer
	}{{"request", request, 503}, {"answer", response, 503}, {"answer to a call", call, 503}, {"tick", outside, 0}} {
		t.Run(c.name, func(t *testing.T) {
			f := &crashing{phase: c.phase}
			h := host(t, f)
			id := h.InitializeHttpContext()
			if action := h.CallOnRequestHeaders(id, [][2]string{{"x-request-id", "the-id"}}, true); action != types.ActionPause {
				t.Errorf("action %v, want pause", action)
			}
			got := uint32(0)
			if answer := h.GetSentLocalResponse(id); answer != nil {
				got = answer.StatusCode
			}
			if got != c.status {
				t.Errorf("answered %d, want %d", got, c.status)
			}
			if n, err := h.GetCounterMetric("crashes"); err != nil || n != 1 {
				t.Errorf("counted %d, %v", n, err)
			}
			want := "crashed in request the-id"
			if c.phase == outside {
				want = "crashed outside of a request"
			}
			if log := h.GetCriticalLogs(); len(log) != 1 || log[0] != want {
				t.Errorf("logged %q", log)
			}
		})
	}
}

// A VM in which nothing goes well any more is given up; one that serves between
// its crashes is not.
func TestPatience(t *testing.T) {
	f := &crashing{phase: outside}
	h := host(t, f)
	crash := func() verdict {
		h.CallOnRequestHeaders(h.InitializeHttpContext(), nil, true)
		return f.verdicts[len(f.verdicts)-1]
	}
	for range 3 {
		for n := range maxCrashesInRow {
			if v := crash(); v != stop {
				t.Fatalf("crash %d in a row: %v", n+1, v)
			}
		}
		Ended(7)
	}
	for range maxCrashesInRow {
		crash()
	}
	if v := crash(); v != giveUp {
		t.Errorf("crash %d in a row: %v, want giveUp", maxCrashesInRow+1, v)
	}
}

// A request that has crashed, once or more, does not end well, nor does it begin the
// count anew; the next one of its number does.
func TestEnded(t *testing.T) {
	f := &crashing{phase: request, context: 7}
	h := host(t, f)
	for range 2 {
		h.CallOnRequestHeaders(h.InitializeHttpContext(), nil, true)
	}
	if !Ended(7) || crashesInRow != 2 {
		t.Errorf("ended well, %d crashes in a row", crashesInRow)
	}
	if Ended(7) || crashesInRow != 0 || len(crashedRequests) != 0 {
		t.Errorf("still said to have crashed, %d in a row, broken %v", crashesInRow, crashedRequests)
	}
}

// A VM whose requests crash and never end is given up too: what it remembers of
// them has a bound.
func TestBrokenRequestsAreBounded(t *testing.T) {
	f := &crashing{phase: request}
	h := host(t, f)
	for n := range maxCrashedRequests + 1 {
		f.context = uint32(n)
		h.CallOnRequestHeaders(h.InitializeHttpContext(), nil, true)
		Ended(1 << 30) // another goes well
	}
	if v := f.verdicts; v[maxCrashedRequests-1] != stop || v[maxCrashedRequests] != giveUp || len(crashedRequests) != maxCrashedRequests {
		t.Errorf("%v, %v, %d remembered", v[maxCrashedRequests-1], v[maxCrashedRequests], len(crashedRequests))
	}
}

// The filters that see requests are built with their guards: with an exception of
// their own, which section 13 declares, and with one call for the end of a request.
func TestFiltersAreGuarded(t *testing.T) {
	for _, name := range []string{"edge", "chatcaps", "validate", "cache"} {
		module := wasmtest.Guarded(t, name)
		if !slices.Contains(sections(module), 13) {
			t.Errorf("%s.wasm has no guards", name)
		}
		for export, want := range map[string]bool{"proxy_on_delete": true, "proxy_on_log": false, "proxy_on_done": false} {
			text := append([]byte{byte(len(export))}, export...) // its length, its name, and that it is a function
			if got := bytes.Contains(module, append(text, 0)); got != want {
				t.Errorf("%s.wasm exports %s: %v", name, export, got)
			}
		}
	}
}

// sections are the ids of a module's sections, each with its length behind it.
func sections(module []byte) (ids []byte) {
	for rest := module[8:]; len(rest) > 0; {
		length, n := binary.Uvarint(rest[1:])
		ids = append(ids, rest[0])
		rest = rest[1+n+int(length):]
	}
	return ids
}
