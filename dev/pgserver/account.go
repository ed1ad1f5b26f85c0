package pgserver

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is who runs the server: the caller, or if that is root, another user.
type account struct {
	switched bool // the server runs as another user than this process
	uid, gid uint32
}

// servers lists users that may run a server for root, best first.
var servers = []string{"postgres", "nobody"}

// findAccount chooses the account for a process of the effective user euid.
func findAccount(euid int) (account, error) {
	if euid != 0 {
		return account{uid: uint32(euid), gid: uint32(os.Getegid())}, nil
	}
	for _, name := range servers {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil && uid != 0 {
			return account{switched: true, uid: uint32(uid), gid: uint32(gid)}, nil
		}
	}
	return account{}, errors.New("PostgreSQL refuses to run as root and there is no user postgres or nobody: create one (useradd --system postgres), or run as another user than root")
}

// attributes returns what makes a child run as the account.
func (a account) attributes() *syscall.SysProcAttr {
	if !a.switched {
		return &syscall.SysProcAttr{}
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.uid, Gid: a.gid}}
}

// own gives path to the account.
func (a account) own(path string) error {
	if !a.switched {
		return nil
	}
	if err := os.Lchown(path, int(a.uid), int(a.gid)); err != nil {
		return fmt.Errorf("give %s to the user that runs PostgreSQL: %w", path, err)
	}
	return nil
}

// reaches reports whether the account may pass through every folder above and
// including dir.
func (a account) reaches(dir string) bool {
	if !a.switched {
		return true
	}
	for {
		info, err := os.Stat(dir)
		if err != nil || !a.enters(info) {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

func (a account) enters(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	mode := info.Mode().Perm()
	switch {
	case st.Uid == a.uid:
		return mode&0o100 != 0
	case st.Gid == a.gid:
		return mode&0o010 != 0
	}
	return mode&0o001 != 0
}
