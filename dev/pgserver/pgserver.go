// Package pgserver runs a private PostgreSQL server, from the machine's own
// binaries where it has any, for a local stack and for tests.
//
// A server is a child of this process and dies with it: by a fast shutdown,
// also when this process is killed. It listens on loopback TCP only, on a port
// of its own, behind a generated password. PostgreSQL refuses to run as root;
// then it runs as the user postgres, and if that user could not reach the data
// folder (a checkout under /root, say) the data moves under /var/tmp with a
// symbolic link in its place.
package pgserver

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sluice.dev/sluice/platform/process/child"
)

// superuser is the role that owns everything in a private server.
const superuser = "sluice"

// Config says which server to run.
type Config struct {
	// Dir holds the data, the password (mode 0600), the last port and the lock.
	// Created if missing. Empty is right for an ephemeral server only.
	Dir string
	// Ephemeral servers live in a temporary folder that Stop removes, and write
	// nothing durably: for tests.
	Ephemeral bool
	// Memory has an ephemeral server's files in memory, where there is room.
	Memory bool
	// Replicated has commits of an ephemeral server wait for its standby, once there is
	// one: see Synchronous.
	Replicated bool
	// Follows is the running server of which this one is to be a standby; what is in Dir
	// is replaced by a copy of that one's data. It answers reads. Nil: it is a primary.
	Follows *Server
	// Port on 127.0.0.1. Zero: the port of the last run if it is free, else any.
	Port int
	// Database is created if missing and named by URL. Empty: "postgres".
	Database string
	// Path lists folders to search for the binaries, as $PATH does, beside
	// /usr/lib/postgresql. Empty: those only.
	Path string
	// Download is what runs where none are found. Without Unpack that is an error.
	Download Download
	// Log receives the server's own log lines. Nil discards them.
	Log io.Writer
	// StartTimeout bounds initdb and the wait for readiness. Zero: 60 s.
	StartTimeout time.Duration
}

// Server is a running server.
type Server struct {
	proc     *child.Process
	home     home
	password string
	port     int
	database string
	log      *logTail
}

// Start starts a server and returns when it accepts connections and its
// database exists. Stop must be called. The error is one line that names cause
// and remedy, and nothing is left running after it.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.StartTimeout == 0 {
		cfg.StartTimeout = time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.StartTimeout)
	defer cancel()
	h, err := openHome(cfg)
	if err != nil {
		return nil, err
	}
	s, err := start(ctx, cfg, h)
	if err != nil {
		h.close()
		return nil, err
	}
	return s, nil
}

func start(ctx context.Context, cfg Config, h home) (*Server, error) {
	bin, err := findBinaries(ctx, cfg.Path, cfg.Download, h)
	if err != nil {
		return nil, err
	}
	if err := stopLeftover(ctx, h.data()); err != nil {
		return nil, err
	}
	var password string
	if cfg.Follows != nil {
		password, err = h.copyPrimary(ctx, bin, cfg.Follows)
	} else {
		password, err = h.prepare(ctx, bin)
	}
	if err != nil {
		return nil, err
	}
	s := &Server{home: h, password: password, database: cfg.Database}
	if s.database == "" {
		s.database = "postgres"
	}
	if err := s.launch(ctx, bin, cfg); err != nil {
		return nil, err
	}
	if err := ensureDatabase(ctx, s.urlOf("postgres"), s.database); err != nil {
		return nil, firstOf(err, s.stopProcess())
	}
	return s, nil
}

// launch starts the postmaster, with another port if the one chosen at random
// was taken in between.
func (s *Server) launch(ctx context.Context, bin string, cfg Config) error {
	for attempt := 0; ; attempt++ {
		port, err := s.home.choosePort(cfg.Port)
		if err != nil {
			return err
		}
		s.port, s.log = port, newLogTail(cfg.Log)
		err = s.launchOnce(ctx, bin, cfg)
		if err == nil {
			return s.home.recordPort(port)
		}
		if cfg.Port != 0 || attempt == 2 || !strings.Contains(s.log.cause(), "TCP/IP sockets") {
			return err
		}
	}
}

func (s *Server) launchOnce(ctx context.Context, bin string, cfg Config) error {
	args := append([]string{"-D", s.home.data()}, settings(s.port, cfg.Ephemeral)...)
	if cfg.Replicated || cfg.Follows != nil {
		args = append(args, replicated...)
	}
	if cfg.Memory {
		args = append(args, "-c", walInMemory)
	}
	cmd := s.home.command(exec.Command(filepath.Join(bin, "postgres"), args...))
	cmd.Stdout, cmd.Stderr = s.log, s.log
	proc, err := child.Start(cmd, syscall.SIGINT)
	if err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	s.proc = proc
	select {
	case <-s.log.ready:
		return nil
	case <-proc.Done():
		return fmt.Errorf("PostgreSQL did not start: %s; the data is in %s, remove that folder to begin anew", s.log.cause(), s.home.link)
	case <-ctx.Done():
		return firstOf(fmt.Errorf("PostgreSQL was not ready in time (%s)", s.log.cause()), s.stopProcess())
	}
}

// URL is the superuser's connection string for the configured database.
func (s *Server) URL() string { return s.urlOf(s.database) }

// Port is the TCP port on 127.0.0.1.
func (s *Server) Port() int { return s.port }

// Done is closed when the server has ended, for whatever reason.
func (s *Server) Done() <-chan struct{} { return s.proc.Done() }

// PID is the process id of the postmaster.
func (s *Server) PID() int { return s.proc.PID() }

// Cause says in one line why a server that ended by itself did so: the last
// FATAL or PANIC line of its log.
func (s *Server) Cause() string { return s.log.cause() }

// Stop shuts the server down without waiting for its clients, waits for the
// end, and removes an ephemeral server's folder. Stopping twice is harmless.
func (s *Server) Stop() error {
	defer s.home.close()
	return s.stopProcess()
}

func (s *Server) stopProcess() error {
	return s.proc.Stop(syscall.SIGINT, 30*time.Second)
}

func (s *Server) urlOf(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(superuser, s.password),
		Host: "127.0.0.1:" + strconv.Itoa(s.port), Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// firstOf returns the first error that is not nil: the cause, not what the
// clean-up after it met.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
