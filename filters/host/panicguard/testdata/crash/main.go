// A filter that crashes where the request's X-Crash says, in one of the ways that
// a mistake in Go can: "where how". It uses the stack and the heap as real ones do.
package main

import (
	"runtime"
	"strings"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/host/panicguard"
)

func main() {}

func init() { proxywasm.SetVMContext(&vm{}) }

type vm struct{ types.DefaultVMContext }

func (*vm) NewPluginContext(uint32) types.PluginContext { return &plugin{} }

type plugin struct {
	types.DefaultPluginContext
	ticks []string // how the next ones crash
	heap  proxywasm.MetricGauge
	shown int64 // what heap says
}

func (p *plugin) OnPluginStart(int) types.OnPluginStartStatus {
	panicguard.Define("sluice_crashes_total")
	p.heap = proxywasm.DefineGaugeMetric("sluice_heap")
	if proxywasm.SetTickPeriodMilliSeconds(20) != nil {
		return types.OnPluginStartStatusFailed
	}
	return types.OnPluginStartStatusOK
}

func (p *plugin) OnTick() {
	var m runtime.MemStats
	runtime.GC() // so that only what something holds is in use
	runtime.ReadMemStats(&m)
	p.heap.Add(int64(m.HeapInuse) - p.shown)
	p.shown = int64(m.HeapInuse)
	if len(p.ticks) > 0 {
		how := p.ticks[0]
		p.ticks = p.ticks[1:]
		crash(how)
	}
}

func (p *plugin) NewHttpContext(context uint32) types.HttpContext {
	return &request{plugin: p, context: context}
}

type request struct {
	types.DefaultHttpContext
	plugin     *plugin
	context    uint32
	where, how string
	kept       [][]byte // what the collector must not take
}

// in crashes if this is where, with frames on the stack that hold pointers.
func (r *request) in(where string) {
	mine := make([]byte, 64)
	for i := range mine {
		mine[i] = byte(len(where))
	}
	r.kept = append(r.kept, mine)
	if r.where == where {
		r.how = deeper(r.how, 20)
	}
	for _, b := range r.kept[len(r.kept)-1] {
		if b != byte(len(where)) {
			_ = proxywasm.SendHttpResponse(500, nil, nil, -1) // memory was taken that is in use
		}
	}
}

//go:noinline
func deeper(how string, n int) string {
	local := make([]byte, 128+n)
	if n > 0 {
		how = deeper(how, n-1)
	} else {
		crash(how)
	}
	return how + string(local[:0])
}

var (
	nowhere *request
	none    map[string]int
	zero    int
	some    = []int{1}
)

func crash(how string) {
	switch how {
	case "panic":
		panic("as it was told")
	case "nil":
		nowhere.where = "x"
	case "map":
		none[how] = 1
	case "index":
		some[len(how)] = 1
	case "divide":
		some[0] = len(how) / zero
	case "stack":
		some[0] = endless(len(how))
	case "memory":
		for n := 1 << 20; ; n *= 2 {
			hoard = append(hoard, make([]byte, n))
		}
	case "type":
		_ = any(how).(types.HttpContext).OnHttpRequestHeaders(0, true)
	}
}

// hoard is what is never let go.
var hoard [][]byte

//go:noinline
func endless(n int) int {
	local := [64]int{n}
	return endless(n+1) + local[n%64]
}

func (r *request) OnHttpRequestHeaders(int, bool) types.Action {
	if v, err := proxywasm.GetHttpRequestHeader("x-crash"); err == nil {
		r.where, r.how, _ = strings.Cut(v, " ")
	}
	if r.where == "tick" {
		r.plugin.ticks = append(r.plugin.ticks, r.how)
	}
	if strings.HasPrefix(r.where, "own-") {
		_ = proxywasm.SendHttpResponse(401, [][2]string{{"content-type", "application/json"}}, []byte("{}"), -1)
		return types.ActionPause
	}
	garbage() // so that the collector runs while frames are there
	r.in("request")
	return types.ActionContinue
}

// garbage leaves 64 KiB behind.
func garbage() {
	for range 64 {
		_ = append([]byte(nil), make([]byte, 1024)...)
	}
}

func (r *request) OnHttpRequestBody(int, bool) types.Action {
	r.in("upload")
	return types.ActionContinue
}

func (r *request) OnHttpResponseHeaders(int, bool) types.Action {
	r.in("answer")
	r.in("own-answer")
	return types.ActionContinue
}

func (r *request) OnHttpResponseBody(int, bool) types.Action {
	r.in("download")
	return types.ActionContinue
}

func (r *request) OnHttpStreamDone() {
	r.in("done")
	panicguard.Ended(r.context)
}
