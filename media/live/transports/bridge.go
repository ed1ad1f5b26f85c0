package transports

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sluice.dev/sluice/platform/process/child"
)

// A bridge is a program of the operator's that speaks a transport which we do not. It is
// started for each link, and once to look for sources; docs/broadcast.md has the
// contract. It is told by its environment what to do, and says on its standard output,
// a line of JSON each, how it goes and what it has found.

// stopTime is how long a bridge may take to end after SIGTERM.
const stopTime = 5 * time.Second

// maxLine bounds a line of a bridge, in bytes; longer ones are left out.
const maxLine = 4 << 10

// line is what a bridge says.
type line struct {
	State   string      `json:"state"` // waiting, running or failed
	Message string      `json:"message"`
	Source  *lineSource `json:"source"` // one that was found, or is still there
	Gone    string      `json:"gone"`   // the name of one that is not there any more
}

// lineSource is a source as a bridge tells of it.
type lineSource struct {
	Name    string `json:"name"`
	Address string `json:"address"`
}

// lines splits what a bridge writes, and hands each line to tell. It keeps maxLine
// bytes at most, and takes time linear in what is written.
type lines struct {
	tell func(line)
	held []byte
	skip bool
}

// Write takes output of the bridge.
func (l *lines) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte("\n"))
		rest = after
		if !l.skip && len(l.held)+len(part) > maxLine {
			l.skip = true
		}
		if !l.skip {
			l.held = append(l.held, part...)
		}
		if ended {
			l.end()
		}
	}
	return len(p), nil
}

// end hands on the line that is complete.
func (l *lines) end() {
	var said line
	if !l.skip && json.Unmarshal(l.held, &said) == nil {
		l.tell(said)
	}
	l.held, l.skip = l.held[:0], false
}

// execute runs the bridge of a transport with an environment of env alone until it ends
// or ctx does.
func (s *Supervisor) execute(ctx context.Context, transport string, env []string, tell func(line)) error {
	program := s.Settings.Bridges[transport]
	cmd := exec.Command(program)
	cmd.Dir = filepath.Dir(program)
	cmd.Env = append(env, "SLUICE_BRIDGE_TRANSPORT="+transport)
	for _, name := range []string{"PATH", "HOME", "LANG", "LD_LIBRARY_PATH"} {
		if text, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+text)
		}
	}
	cmd.Stdout, cmd.Stderr = &lines{tell: tell}, os.Stderr
	p, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		return fmt.Errorf("start the bridge: %w", err)
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		if err := p.Stop(syscall.SIGTERM, stopTime); err != nil {
			s.Log.WarnContext(ctx, "a bridge had to be killed", "transport", transport, "cause", err)
		}
		return ctx.Err()
	}
	return errors.Join(errors.New("the bridge ended"), p.Err())
}

// bridge has the operator's program work on the link.
func (w *worker) bridge(ctx context.Context) error {
	if w.Direction == In {
		if err := w.enter(ctx); err != nil {
			return err
		}
	}
	w.say(Waiting, "")
	p := w.point()
	env := []string{"SLUICE_BRIDGE_MODE=" + w.Direction, "SLUICE_BRIDGE_SOURCE=" + w.Name, "SLUICE_BRIDGE_ADDRESS=" + w.Address,
		"SLUICE_BRIDGE_URL=" + p.URL(), "SLUICE_BRIDGE_USER=" + p.User, "SLUICE_BRIDGE_PASSWORD=" + p.Password}
	return w.execute(ctx, w.Transport, env, func(l line) {
		if l.State == Waiting || l.State == Running || l.State == Failed {
			w.say(l.State, l.Message)
		}
	})
}

// guarded lets only those connect whose address the operator allows.
type guarded struct {
	net.Listener
	allows func(netip.Addr) bool
}

func (w *worker) guard(l net.Listener) net.Listener { return guarded{l, w.Settings.Network.Allows} }

// Accept waits for the next connection that is allowed.
func (g guarded) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if from, err := netip.ParseAddrPort(c.RemoteAddr().String()); err == nil && g.allows(from.Addr().Unmap()) {
			return c, nil
		}
		_ = c.Close()
	}
}

// clean is text of a bridge as it is kept: one line of at most maxName characters.
func clean(text string) string {
	return cut(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "")))
}
