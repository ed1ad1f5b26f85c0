// Command provision makes ready what the local stack and the tests need.
//
//	provision tools     TinyGo and Envoy under .sluice/tools
//	provision envoy     Envoy alone; prints its path
//	provision filters   the tools, and the filters under .sluice/wasm
//
// It works on the checkout in the present folder. SLUICE_ENVOY names an Envoy to
// use as it is. Exit status 1 with one line on standard error if something is
// missing and cannot be made, 2 for wrong usage.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"sluice.dev/sluice/deploy/local/tools"
)

var errUsage = errors.New("usage: provision tools|envoy|filters")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "provision:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errUsage
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	cfg := tools.Config{Root: root, Envoy: os.Getenv("SLUICE_ENVOY"), Path: os.Getenv("PATH"), Progress: os.Stderr}
	switch args[0] {
	case "tools":
		_, err := tools.Provision(ctx, cfg)
		return err
	case "envoy":
		path, err := tools.ProvisionEnvoy(ctx, cfg)
		if err == nil {
			fmt.Println(path)
		}
		return err
	case "filters":
		tc, err := tools.Provision(ctx, cfg)
		if err != nil {
			return err
		}
		return tools.BuildFilters(ctx, cfg, tc)
	}
	return errUsage
}
