package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// copyPrimary fills the data folder with a base backup of another server, which a
// server on it then follows. What was there is gone: a primary of before has written
// what nobody else has, and must not go on from that.
func (h home) copyPrimary(ctx context.Context, bin string, from *Server) (password string, err error) {
	program := filepath.Join(bin, "pg_basebackup")
	if _, err := os.Stat(program); err != nil {
		return "", fmt.Errorf("a standby needs pg_basebackup, which is not beside the server in %s: install PostgreSQL (apt-get install postgresql)", bin)
	}
	if err := os.WriteFile(h.state+".password", []byte(from.password+"\n"), 0o600); err != nil {
		return "", err
	}
	fresh := filepath.Join(h.base, "basebackup")
	for _, dir := range []string{fresh, h.data()} {
		if err := os.RemoveAll(dir); err != nil {
			return "", err
		}
	}
	cmd := h.command(exec.CommandContext(ctx, program, "-D", fresh, "-h", "127.0.0.1", "-p", strconv.Itoa(from.port), "-U", superuser,
		"--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync"))
	cmd.Env = append(cmd.Env, "PGPASSWORD="+from.password) // which ends up in primary_conninfo
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("pg_basebackup of port %d: %w: %s", from.port, err, lastLine(out))
	}
	return from.password, os.Rename(fresh, h.data())
}

// look is how often a server is asked for what it gives no signal of.
const look = 20 * time.Millisecond

// Synchronous has every commit of this primary wait until its standby has it on disk,
// and returns once the standby has everything that was committed before.
func (s *Server) Synchronous(ctx context.Context) error {
	return s.ask(ctx, func(conn *pgx.Conn) error {
		for _, sql := range []string{`ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`} {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return err
			}
		}
		tick := time.NewTicker(look)
		defer tick.Stop()
		for {
			var has bool
			err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync' AND flush_lsn >= pg_current_wal_flush_lsn())`).Scan(&has)
			if err != nil || has {
				return err
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return fmt.Errorf("no standby follows port %d: %w", s.port, ctx.Err())
			}
		}
	})
}

// Promote makes a primary of this standby, and returns when it takes writes. They wait
// for no standby until Synchronous says so.
func (s *Server) Promote(ctx context.Context) error {
	return s.ask(ctx, func(conn *pgx.Conn) error {
		var done bool
		err := conn.QueryRow(ctx, `SELECT pg_promote(wait => true, wait_seconds => 60)`).Scan(&done)
		if err == nil && !done {
			err = errors.New("it was still recovering after a minute")
		}
		return err
	})
}

// ask runs f on a connection of the superuser.
func (s *Server) ask(ctx context.Context, f func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, s.urlOf("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return f(conn)
}

// Kill ends the server and all its processes at once by SIGKILL, as the loss of its
// machine does, and waits for the end. Stop must still be called.
func (s *Server) Kill() error {
	pid := s.PID()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil { // first: it would start anew what it misses
		return err
	}
	for field := range strings.FieldsSeq(string(text)) {
		if child, err := strconv.Atoi(field); err == nil {
			_ = syscall.Kill(child, syscall.SIGKILL) // it may have ended with the postmaster
		}
	}
	<-s.Done()
	return nil
}
