//go:build tinygo

package panicguard

import "unsafe"

// frames is the list of frames on the stack in which TinyGo's collector looks for
// pointers. A panic leaves its own frames there, so whoever catches it puts back
// what was there before.
//
//go:extern runtime.stackChainStart
var frames unsafe.Pointer

//export sluice_guard_frames
func framesAddress() *unsafe.Pointer { return &frames }

//export sluice_guard_crashed
func exportCrashed(in phase, context uint32) verdict { return handleCrash(in, context) }
