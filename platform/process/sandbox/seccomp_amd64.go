package sandbox

import "golang.org/x/sys/unix"

// machine is how the kernel calls this one; otherABI is the first number of the x32
// calls, which would pass by a filter of numbers.
const (
	machine  = unix.AUDIT_ARCH_X86_64
	otherABI = 0x40000000
)

// machineCalls are those that Go or the C library use here and elsewhere not.
var machineCalls = []uint32{unix.SYS_EPOLL_WAIT, unix.SYS_POLL, unix.SYS_ARCH_PRCTL}
