package pgserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// prepare makes the data folder on first use and returns the password. An
// interrupted initdb leaves nothing: it works beside the final place.
func (h home) prepare(ctx context.Context, bin string) (string, error) {
	passwordFile := h.state + ".password"
	if _, err := os.Stat(filepath.Join(h.data(), "PG_VERSION")); err == nil {
		password, err := os.ReadFile(passwordFile)
		if err != nil {
			return "", fmt.Errorf("the password of the data in %s is lost (%w): remove that folder to begin anew", h.link, err)
		}
		return strings.TrimSpace(string(password)), h.matches(bin)
	}
	password := rand.Text()
	if err := os.WriteFile(passwordFile, []byte(password+"\n"), 0o600); err != nil {
		return "", err
	}
	return password, h.initdb(ctx, bin, password)
}

func (h home) initdb(ctx context.Context, bin, password string) error {
	fresh := filepath.Join(h.base, "initdb")
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	pwfile := filepath.Join(h.base, "initdb.password")
	if err := os.WriteFile(pwfile, []byte(password+"\n"), 0o600); err != nil {
		return err
	}
	defer func() { _ = os.Remove(pwfile) }()
	if err := h.own(pwfile); err != nil {
		return err
	}
	args := []string{"-D", fresh, "-U", superuser, "--pwfile=" + pwfile, "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8"}
	if h.ephemeral {
		args = append(args, "--no-sync")
	}
	cmd := h.command(exec.CommandContext(ctx, filepath.Join(bin, "initdb"), args...))
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb in %s: %w: %s", h.base, err, lastLine(out))
	}
	return os.Rename(fresh, h.data())
}

// matches refuses a data folder of another major version, which postgres would
// refuse with a longer text.
func (h home) matches(bin string) error {
	if got, want := h.made(), major(bin); got != want {
		return fmt.Errorf("the data in %s was made by PostgreSQL %d, the server here is %d: install version %d or remove that folder", h.link, got, want, got)
	}
	return nil
}

// made is the major version that made the data; 0: there are none.
func (h home) made() int {
	version, err := os.ReadFile(filepath.Join(h.data(), "PG_VERSION"))
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(version)))
	return n
}

// lastLine returns the last line of out that says something.
func lastLine(out []byte) string {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	return string(lines[len(lines)-1])
}
