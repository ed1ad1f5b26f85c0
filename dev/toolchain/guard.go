package toolchain

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// What package filters/host/panicguard exports. A program without it stays as it is.
const (
	guardFrames  = "sluice_guard_frames"
	guardCrashed = "sluice_guard_crashed"
)

// callback is one of those by which Envoy calls a filter (proxy-wasm 0.2). Their
// first parameter is the context.
type callback struct {
	name   string
	params int  // words
	result bool // one word
	phase  int  // of filters/host/panicguard
}

// guarded are the callbacks that get a frame. Those that start a VM or a
// configuration have none: if they crash, the configuration is refused.
var guarded = []callback{
	{"proxy_on_context_create", 2, false, 0},
	{"proxy_on_request_headers", 3, true, 1},
	{"proxy_on_request_body", 3, true, 1},
	{"proxy_on_request_trailers", 2, true, 1},
	{"proxy_on_response_headers", 3, true, 2},
	{"proxy_on_response_body", 3, true, 2},
	{"proxy_on_response_trailers", 2, true, 2},
	{"proxy_on_http_call_response", 5, false, 3},
	{"proxy_on_queue_ready", 2, false, 0},
	{"proxy_on_tick", 1, false, 0},
	{"proxy_on_log", 1, false, 0},
	{"proxy_on_done", 1, true, 0},
	{"proxy_on_delete", 1, false, 0},
}

// last is the callback by which a context ends, of a request or of a configuration. Envoy
// calls those of ends one behind the other, and leaves out what a program does not export.
// So a guarded program exports last alone, which calls all of them: two calls from Envoy less
// for each request. Each has its frame: one that crashes does not keep the next from its
// turn. What proxy_on_done returns is lost, so no configuration can put its end off.
const last = "proxy_on_delete"

var ends = []string{"proxy_on_log", "proxy_on_done", last}

var (
	errGuard = errors.New("the text of the program is not as expected")
	// stackPointer is the first global of what wasm-ld links with --stack-first.
	stackPointer = regexp.MustCompile(`(?m)^ \(global (\$\S+) \(mut i32\) \(i32\.const \d+\)\)$`)
	trap         = regexp.MustCompile(`(?m)^( *)\(unreachable\)`)
	memory       = regexp.MustCompile(`(?m)^ \(memory (\$\S+) (\d+)\)$`)
)

// maxPages is how much memory a filter may have, in pages of 64 KiB: 256 MiB. By
// itself V8 would give it 4 GiB, in each worker.
const maxPages = 4096

// Bound gives a program, as the text that wasm-opt prints, a bound for its memory.
func Bound(program string) (string, error) {
	if len(memory.FindAllString(program, -1)) != 1 {
		return "", errGuard
	}
	return memory.ReplaceAllString(program, fmt.Sprintf(" (memory $1 $2 %d)", maxPages)), nil
}

// Guard rewrites a program, as the text that wasm-opt prints, so that a panic
// costs one request (filters/host/panicguard): each trap becomes an exception, and each
// callback gets a frame that catches it, puts the stack back as it was, and asks
// the program what becomes of the request. A frame costs nothing while nothing is
// thrown. The exceptions are those of WebAssembly's first proposal, which both
// wasm-opt 108 and Envoy's V8 know.
func Guard(program string) (string, error) {
	crashed, used := exported(program, guardCrashed)
	if !used {
		return program, nil
	}
	frames, ok := exported(program, guardFrames)
	stack := stackPointer.FindStringSubmatch(program)
	if !ok || stack == nil {
		return "", errGuard
	}
	program = trap.ReplaceAllString(program, "$1(throw $$crash)")
	program = strings.Replace(program, "\n (export ", "\n (tag $crash)\n (export ", 1)
	var added, ending strings.Builder
	for _, c := range guarded {
		inner, ok := exported(program, c.name)
		if !ok {
			return "", fmt.Errorf("%w: no %s", errGuard, c.name)
		}
		added.WriteString(c.frame(inner, stack[1], frames, crashed))
		as := export(c.name) + "$guarded_" + c.name + "))\n"
		if slices.Contains(ends, c.name) {
			as = ""
			ending.WriteString(c.call())
		}
		program = strings.Replace(program, export(c.name)+inner+"))\n", as, 1)
	}
	program = strings.Replace(program, "\n (export ", "\n"+export(last)+"$ended))\n (export ", 1)
	end := strings.LastIndex(program, ")")
	return program[:end] + added.String() + " (func $ended (param $0 i32)\n" + ending.String() + " )\n" + program[end:], nil
}

// call calls the frame of a callback whose only parameter is the context.
func (c callback) call() string {
	call := "(call $guarded_" + c.name + " (local.get $0))"
	if c.result {
		call = "(drop " + call + ")"
	}
	return "  " + call + "\n"
}

// frame is the function that stands before the callback inner. The arguments are
// names of the text: of the callback, the stack's pointer, and the guard's exports.
func (c callback) frame(inner, stack, frames, crashed string) string {
	var params, args strings.Builder
	for i := range c.params {
		fmt.Fprintf(&params, " (param $%d i32)", i)
		fmt.Fprintf(&args, " (local.get $%d)", i)
	}
	result, verdict := "", ""
	if c.result {
		result, verdict = " (result i32)", "(local.get $verdict)"
	}
	return strings.NewReplacer("NAME", c.name, "PARAMS", params.String(), "ARGS", args.String(), "RESULT", result, "VALUE", verdict,
		"INNER", inner, "STACK", stack, "FRAMES", frames, "CRASHED", crashed, "PHASE", fmt.Sprint(c.phase)).Replace(frameText)
}

const frameText = ` (func $guarded_NAMEPARAMSRESULT
  (local $stack i32) (local $frames i32) (local $verdict i32)
  (local.set $stack (global.get STACK))
  (local.set $frames (i32.load (call FRAMES)))
  (tryRESULT
   (do (call INNERARGS))
   (catch_all
    (global.set STACK (local.get $stack))
    (i32.store (call FRAMES) (local.get $frames))
    (local.set $verdict (call CRASHED (i32.const PHASE) (local.get $0)))
    (if (i32.lt_s (local.get $verdict) (i32.const 0)) (then (unreachable)))
    VALUE)))
`

func export(name string) string { return ` (export "` + name + `" (func ` }

// exported returns the function that a program exports by name.
func exported(program, name string) (function string, ok bool) {
	_, rest, ok := strings.Cut(program, export(name))
	function, _, closed := strings.Cut(rest, ")")
	return function, ok && closed
}
