// Command withpg runs a command beside a throw-away PostgreSQL server.
//
//	withpg [-memory] CMD ARGS…
//
// With -memory the server's files are in memory if there is room, as tests want it,
// which make hundreds of databases. Measurements want them where others have theirs.
//
// CMD finds a superuser's connection string in SLUICE_TEST_DATABASE_URL. A value
// that is set already is used as it is, and no server is started. The exit
// status is that of CMD. SIGINT and SIGTERM reach CMD; the server is stopped and
// its folder removed in every case.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"sluice.dev/sluice/dev/fetch"
	"sluice.dev/sluice/dev/foreground"
	"sluice.dev/sluice/dev/pgserver"
)

const urlVariable = "SLUICE_TEST_DATABASE_URL"

func main() {
	status, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "withpg:", err)
	}
	os.Exit(status)
}

// download is the server for a machine that has none, kept among the tools of the
// checkout in the present folder.
func download() pgserver.Download {
	cfg := fetch.Config{Tools: filepath.Join(".sluice", "tools"), Say: func(line string) { fmt.Fprintln(os.Stderr, "withpg:", line) }}
	return pgserver.Download{Version: fetch.PostgresVersion, Unpack: cfg.UnpackPostgres}
}

// run returns the exit status; 1 goes with an error of our own, 2 with wrong usage.
func run(argv []string) (int, error) {
	memory := len(argv) > 0 && argv[0] == "-memory"
	if memory {
		argv = argv[1:]
	}
	if len(argv) == 0 {
		return 2, errors.New("usage: withpg [-memory] CMD ARGS…")
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if os.Getenv(urlVariable) != "" {
		return foreground.Run(argv, os.Environ(), signals)
	}
	server, err := pgserver.Start(context.Background(), pgserver.Config{Ephemeral: true, Memory: memory, Path: os.Getenv("PATH"), Download: download()})
	if err != nil {
		return 1, err
	}
	status, err := foreground.Run(argv, append(os.Environ(), urlVariable+"="+server.URL()), signals)
	return status, errors.Join(err, server.Stop())
}
