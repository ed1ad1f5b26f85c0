package clock

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// patch is what is written at a place of the image.
type patch struct {
	at    int
	bytes []byte
}

// A detour takes the place of a function of the kernel: it makes the system call
// and adds the 8 bytes of the slot to the seconds. offset is where in code the
// 4 bytes are that say how far the slot is.
type detour struct {
	symbol string
	code   []byte
	offset int
}

var detours = []detour{
	{"__vdso_clock_gettime", []byte{
		0xb8, 228, 0, 0, 0, // mov eax, SYS_clock_gettime
		0x0f, 0x05, // syscall
		0x85, 0xc0, // test eax, eax
		0x75, 0x13, // jne end: it failed
		0x85, 0xff, // test edi, edi
		0x74, 0x05, // je add: CLOCK_REALTIME
		0x83, 0xff, 0x05, // cmp edi, CLOCK_REALTIME_COARSE
		0x75, 0x0a, // jne end: another clock
		0x48, 0x8b, 0x0d, 0, 0, 0, 0, // add: mov rcx, [slot]
		0x48, 0x01, 0x0e, // add [rsi], rcx
		0xc3, // end: ret
	}, 23},
	{"__vdso_gettimeofday", []byte{
		0xb8, 96, 0, 0, 0, // mov eax, SYS_gettimeofday
		0x0f, 0x05, // syscall
		0x85, 0xc0, // test eax, eax
		0x75, 0x0f, // jne end: it failed
		0x48, 0x85, 0xff, // test rdi, rdi
		0x74, 0x0a, // je end: nothing is asked
		0x48, 0x8b, 0x0d, 0, 0, 0, 0, // mov rcx, [slot]
		0x48, 0x01, 0x0f, // add [rdi], rcx
		0xc3, // end: ret
	}, 19},
	{"__vdso_time", []byte{
		0xb8, 201, 0, 0, 0, // mov eax, SYS_time
		0x0f, 0x05, // syscall
		0x48, 0x03, 0x05, 0, 0, 0, 0, // add rax, [slot]
		0x48, 0x85, 0xff, // test rdi, rdi
		0x74, 0x03, // je end: it is not to be stored
		0x48, 0x89, 0x07, // mov [rdi], rax
		0xc3, // end: ret
	}, 10},
}

// room is what a detour may take, in bytes.
const room = 64

// plan says what to write so that the functions in image, the kernel's as they are
// in a process, answer so many seconds from the true time. The detours go behind
// the end of what the kernel uses of its last page, and what led to a function
// leads to them. What is there already is left out; the slot comes first.
func plan(image []byte, seconds int64) ([]patch, error) {
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, err
	}
	if f.Machine != elf.EM_X86_64 {
		return nil, fmt.Errorf("its code is for %v", f.Machine)
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return nil, err
	}
	slot := (used(image) + 15) &^ 15
	if slot+room*(len(detours)+1) > len(image) {
		return nil, errors.New("the kernel leaves no room in the page of its functions")
	}
	all := []patch{{slot, little(seconds)}}
	for i, d := range detours {
		at := slot + room*(i+1)
		for _, s := range symbols {
			if s.Name == d.symbol {
				code := bytes.Clone(d.code)
				relative(code[d.offset:], at+d.offset, slot)
				jump := []byte{0xe9, 0, 0, 0, 0}
				relative(jump[1:], int(s.Value)+1, at)
				all = append(all, patch{at, code}, patch{int(s.Value), jump})
			}
		}
	}
	if len(all) != 1+2*len(detours) {
		return nil, errors.New("functions are missing among the kernel's")
	}
	return slices.DeleteFunc(all, func(p patch) bool { return bytes.Equal(p.bytes, image[p.at:p.at+len(p.bytes)]) }), nil
}

// relative writes how far it is from behind the 4 bytes at place to target.
func relative(bytes []byte, place, target int) {
	binary.LittleEndian.PutUint32(bytes, uint32(int32(target-place-4)))
}

// used is how many bytes of image are the kernel's: its table of sections is last.
func used(image []byte) int {
	at := binary.LittleEndian.Uint64(image[0x28:])
	size, n := binary.LittleEndian.Uint16(image[0x3a:]), binary.LittleEndian.Uint16(image[0x3c:])
	return int(at) + int(size)*int(n)
}
