package sandbox

import "golang.org/x/sys/unix"

// machine is how the kernel calls this one, which has no second set of calls.
const (
	machine  = unix.AUDIT_ARCH_AARCH64
	otherABI = 0xffffffff
)

// machineCalls are those that Go or the C library use here and elsewhere not.
var machineCalls []uint32
