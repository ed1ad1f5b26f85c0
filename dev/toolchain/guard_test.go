package toolchain

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// program is the text of a module as wasm-opt prints it, with these exports.
func program(global string, exports ...string) string {
	var b strings.Builder
	b.WriteString("(module\n (type $a (func (param i32)))\n " + global + "\n (memory $memory 9)\n (data $d (i32.const 0) \" (unreachable)\")\n (export \"memory\" (memory $0))\n")
	for _, name := range exports {
		b.WriteString(" (export \"" + name + "\" (func $" + name + "))\n")
	}
	b.WriteString(" (func $f\n  (if\n   (local.get $0)\n   (unreachable)\n  )\n  (unreachable)\n )\n)\n")
	return b.String()
}

func callbacks() (names []string) {
	for _, c := range guarded {
		names = append(names, c.name)
	}
	return append(names, guardFrames, guardCrashed)
}

const stackGlobal = "(global $__stack_pointer (mut i32) (i32.const 65536))"

func TestGuard(t *testing.T) {
	got, err := Guard(program(stackGlobal, callbacks()...))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got, "(module\n") || !strings.HasSuffix(strings.TrimSpace(got), ")") || strings.Count(got, "(") != strings.Count(got, ")") {
		t.Errorf("not a module any more:\n%s", got)
	}
	if n := strings.Count(got, "(throw $crash)"); n != 2 {
		t.Errorf("%d traps became exceptions, want 2", n)
	}
	if n := strings.Count(got, "(then (unreachable))"); n != len(guarded) {
		t.Errorf("%d frames can give up, want %d", n, len(guarded))
	}
	if !strings.Contains(got, `" (unreachable)"`) {
		t.Error("data were changed")
	}
	tag, use := strings.Index(got, "(tag $crash)"), strings.Index(got, "(throw $crash)")
	if tag < 0 || tag > use {
		t.Error("the exception is used before it is declared")
	}
	for _, c := range guarded {
		if !strings.Contains(got, "(func $guarded_"+c.name+" ") || !strings.Contains(got, "(do (call $"+c.name) {
			t.Errorf("%s has no frame", c.name)
		}
		if exported := strings.Contains(got, `(export "`+c.name+`" (func $guarded_`+c.name+`))`); exported == slices.Contains(ends, c.name) {
			t.Errorf("%s is exported by its frame: %v", c.name, exported)
		}
	}
}

// Envoy makes one call when a request or a configuration ends, and the program makes
// three of it, each in a frame of its own.
func TestGuardEndsContextsInOneCall(t *testing.T) {
	got, err := Guard(program(stackGlobal, callbacks()...))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(got, `(export "proxy_on_delete" (func $ended))`); n != 1 {
		t.Errorf("the end is exported %d times", n)
	}
	_, body, _ := strings.Cut(got, "(func $ended (param $0 i32)\n")
	body, _, _ = strings.Cut(body, "\n )\n")
	want := []string{"(call $guarded_proxy_on_log (local.get $0))", "(drop (call $guarded_proxy_on_done (local.get $0)))", "(call $guarded_proxy_on_delete (local.get $0))"}
	if lines := strings.Split(strings.ReplaceAll(body, "  ", ""), "\n"); !slices.Equal(lines, want) {
		t.Errorf("the end calls %q", lines)
	}
	for _, name := range []string{"proxy_on_log", "proxy_on_done"} {
		if strings.Contains(got, `(export "`+name+`"`) {
			t.Errorf("%s is exported", name)
		}
	}
}

func TestGuardLeavesAProgramWithoutGuardsAlone(t *testing.T) {
	want := program(stackGlobal, "proxy_on_tick")
	if got, err := Guard(want); err != nil || got != want {
		t.Errorf("changed, %v", err)
	}
}

// A compiler whose output is not as expected fails the build: a filter that lost
// its guards would not be seen.
func TestGuardRefusesWhatItDoesNotKnow(t *testing.T) {
	all := callbacks()
	for name, text := range map[string]string{
		"no stack":               program("(global $g i32 (i32.const 65536))", all...),
		"no callback":            program(stackGlobal, all[1:]...),
		"no list of frames":      program(stackGlobal, append(callbacks()[:len(guarded)], guardCrashed)...),
		"the stack is elsewhere": strings.Replace(program(stackGlobal, all...), " (global", "  (global", 1),
	} {
		if _, err := Guard(text); !errors.Is(err, errGuard) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBound(t *testing.T) {
	got, err := Bound(program(stackGlobal))
	if err != nil || !strings.Contains(got, "\n (memory $memory 9 4096)\n") {
		t.Errorf("%v\n%s", err, got)
	}
	for _, memories := range []string{"", " (memory $memory 9)\n (memory $other 9)\n", " (memory $memory 9 10)\n"} {
		if _, err := Bound("(module\n" + memories + ")\n"); !errors.Is(err, errGuard) {
			t.Errorf("%q: %v", memories, err)
		}
	}
}
