package pgserver

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"sluice.dev/sluice/dev/lockfile"
)

// farHomes is where data goes that the server's user could not reach in place.
const farHomes = "/var/tmp"

// home is the folder of one server and the account that owns it.
type home struct {
	account
	base      string // the real folder; the account owns it
	link      string // the folder as the caller named it: base, or a link to it
	state     string // password and port: beside link, owned by the caller
	lock      *lockfile.Lock
	ephemeral bool
}

func (h home) data() string { return filepath.Join(h.base, "data") }

// openHome creates or finds the folder and takes its lock.
func openHome(cfg Config) (home, error) {
	acc, err := findAccount(os.Geteuid())
	if err != nil {
		return home{}, err
	}
	if cfg.Ephemeral {
		return openEphemeral(acc, cfg.Memory)
	}
	if cfg.Dir == "" {
		return home{}, errors.New("pgserver: Config.Dir is empty")
	}
	link, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return home{}, err
	}
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return home{}, err
	}
	lock, err := lockfile.TryTake(link + ".lock")
	if held := new(lockfile.HeldError); errors.As(err, &held) {
		return home{}, fmt.Errorf("the data in %s is in use by the running process %d: stop that first", link, held.PID)
	} else if err != nil {
		return home{}, err
	}
	h := home{account: acc, link: link, state: link, lock: lock}
	if h.base, err = h.place(); err != nil {
		h.close()
		return home{}, err
	}
	return h, nil
}

// ephemeralName begins the name of the folder of an ephemeral server.
const ephemeralName = "sluice-postgres-"

func openEphemeral(acc account, memory bool) (home, error) {
	parent := temporary(memory)
	if !acc.reaches(parent) {
		parent = farHomes
	}
	base, err := os.MkdirTemp(parent, ephemeralName)
	if err != nil {
		return home{}, err
	}
	h := home{account: acc, base: base, link: base, state: filepath.Join(base, "server"), ephemeral: true}
	return h, h.own(base)
}

// place returns the real folder for h.link: that itself if the account reaches
// it, else one under /var/tmp named after it, with h.link as a link to it.
func (h home) place() (string, error) {
	if target, err := os.Readlink(h.link); err == nil {
		return target, h.makeOwned(target)
	}
	if h.reaches(filepath.Dir(h.link)) {
		return h.link, h.makeOwned(h.link)
	}
	sum := sha256.Sum256([]byte(h.link))
	far := filepath.Join(farHomes, "sluice-postgres-"+hex.EncodeToString(sum[:8]))
	if err := h.makeOwned(far); err != nil {
		return "", err
	}
	if err := os.Symlink(far, h.link); err != nil {
		return "", fmt.Errorf("link %s to the data in %s: %w", h.link, far, err)
	}
	return far, nil
}

// makeOwned creates dir for the account alone. A folder of someone else's, which
// anyone could have put under /var/tmp, is refused.
func (h home) makeOwned(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		return h.own(dir)
	}
	if !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || st.Uid != h.uid {
		return fmt.Errorf("%s belongs to another user than the one that runs PostgreSQL: move it away", dir)
	}
	return nil
}

// command makes cmd run as the account, in the home, with a bare environment:
// PGDATA and its kin must not reach a private server.
func (h home) command(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = h.attributes()
	cmd.Dir = h.base
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", "HOME=" + h.base}
	return cmd
}

// close releases the lock and removes what is ephemeral.
func (h home) close() {
	if h.lock != nil {
		h.lock.Release()
	}
	if h.ephemeral {
		_ = os.RemoveAll(h.base)
	}
}
