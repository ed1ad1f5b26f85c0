// Command provision makes ready what the local stack and the tests need.
//
//	provision tools     TinyGo and Envoy under .sluice/tools
//	provision envoy     Envoy alone; prints its path
//	provision engine    the media engine; prints its path
//	provision ffmpeg    ffmpeg; prints its path
//	provision optional  both, and goes on without what cannot be had
//	provision filters   the tools, and the filters under .sluice/wasm
//
// It works on the checkout in the present folder. SLUICE_ENVOY names an Envoy to
// use as it is, SLUICE_MEDIA_ENGINE and SLUICE_FFMPEG likewise, or say "off". Exit status 1 with one line on standard error if something is
// missing and cannot be made, 2 for wrong usage.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"sluice.dev/sluice/dev/toolchain"
)

var errUsage = errors.New("usage: provision tools|envoy|engine|ffmpeg|optional|filters")

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
	cfg := toolchain.Config{Root: root, Envoy: os.Getenv("SLUICE_ENVOY"), Engine: os.Getenv("SLUICE_MEDIA_ENGINE"), FFmpeg: os.Getenv("SLUICE_FFMPEG"),
		Path: os.Getenv("PATH"), Progress: os.Stderr}
	switch args[0] {
	case "tools":
		_, err := toolchain.Provision(ctx, cfg)
		return err
	case "envoy":
		return show(toolchain.ProvisionEnvoy(ctx, cfg))
	case "engine":
		return show(toolchain.ProvisionEngine(ctx, cfg))
	case "ffmpeg":
		return show(toolchain.ProvisionFFmpeg(ctx, cfg))
	case "optional":
		return optional(ctx, cfg)
	case "filters":
		tc, err := toolchain.Provision(ctx, cfg)
		if err != nil {
			return err
		}
		return toolchain.BuildFilters(ctx, cfg, tc)
	}
	return errUsage
}

// show prints the path of a tool.
func show(path string, err error) error {
	if err == nil {
		fmt.Println(path)
	}
	return err
}

// optional makes what a stack can do without. What is missing is said, and no
// failure; an interrupt is one.
func optional(ctx context.Context, cfg toolchain.Config) error {
	for _, provide := range []func(context.Context, toolchain.Config) (string, error){toolchain.ProvisionEngine, toolchain.ProvisionFFmpeg} {
		if _, err := provide(ctx, cfg); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "tools: going on without it:", err)
		}
	}
	return ctx.Err()
}
