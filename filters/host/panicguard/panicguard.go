// Package panicguard confines a crash in a filter to the request that caused it.
//
// A panic in TinyGo's WebAssembly is a trap, and Envoy ends every request that a
// trapped VM has seen. So the build turns each trap of a filter that uses this
// package into an exception, and puts a frame around Envoy's callbacks that
// catches it and asks here what becomes of the request (dev/toolchain/guard.go).
//
// What no frame can catch still ends the VM, and with it the requests of its
// worker: a stack that is used up, or no memory for what the host returns. So does
// a crash after which the VM is not worth keeping.
package panicguard

import (
	"runtime"
	"slices"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
)

// phase says which callback has crashed.
type phase int32

const (
	outside  phase = iota // none of a request: a tick, or the end of one
	request               // the request has not reached its product, or not as a whole
	response              // the same with its answer, and the client
	call                  // a request waits for the answer to a call, which comes to the plugin
)

// verdict is what the frame does, in place of what the callback did not return.
type verdict int32

const (
	giveUp verdict = iota - 1 // trap after all: Envoy replaces the VM
	goOn                      // let pass
	stop                      // hold: it was answered in another way. Also: done
)

// maxCrashesInRow is how many crashes the VM may have with no request in between that
// ended well. After more it is its state that is broken, not a request: a new VM
// has none.
const maxCrashesInRow = 8

// maxHeap is the heap, in bytes, from which on a crash ends the VM: memory that
// it took is never given back. The build bounds it at twice that.
const maxHeap = 128 << 20

// crashesInRow counts the crashes since a request ended well.
var crashesInRow int

// crashedRequests are the requests that have crashed and not ended.
var crashedRequests []uint32

// maxCrashedRequests bounds them: none is left out by a VM that is well.
const maxCrashedRequests = 256

var counter struct {
	proxywasm.MetricCounter
	defined bool
}

// Define gives the counter of crashes its name.
func Define(metric string) {
	counter.MetricCounter, counter.defined = proxywasm.DefineCounterMetric(metric), true
}

// Ended is called by a filter when the request of a context has ended, and reports
// whether one of its callbacks has crashed.
func Ended(context uint32) (hasCrashed bool) {
	if i := slices.Index(crashedRequests, context); i >= 0 {
		crashedRequests = slices.Delete(crashedRequests, i, i+1)
		return true
	}
	crashesInRow = 0
	return false
}

// handleCrash ends the request whose callback, in a context, has crashed. It never
// passes: it gets 503, to which Envoy adds the envelope and the headers as it does to answers of
// its own, or is cut off where its answer has begun.
func handleCrash(in phase, context uint32) verdict {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if crashesInRow++; crashesInRow > maxCrashesInRow || m.HeapSys > maxHeap || len(crashedRequests) == maxCrashedRequests {
		return giveUp
	}
	if counter.defined {
		counter.Increment(1)
	}
	if in == outside {
		proxywasm.LogCritical("crashed outside of a request")
		return stop
	}
	if in != call && !slices.Contains(crashedRequests, context) {
		crashedRequests = append(crashedRequests, context)
	}
	id, _ := proxywasm.GetHttpRequestHeader("x-request-id")
	proxywasm.LogCritical("crashed in request " + id)
	if proxywasm.SendHttpResponse(503, nil, nil, -1) != nil && in == response {
		return goOn // the host takes one answer: this is the filter's own, on its way
	}
	return stop
}
