// Command provision makes ready what the local stack and the tests need.
//
//	provision tools     TinyGo, Envoy, the media engine, ffmpeg, and the engines for speech, voice and vision, under .sluice/tools
//	provision envoy     Envoy alone; prints its path
//	provision engine    the media engine; prints its path
//	provision ffmpeg    ffmpeg; prints its path
//	provision speech    the engine for speech to text; prints the path of its program
//	provision voice     what speaks texts; prints its path
//	provision tesseract what reads the text of pictures; prints its path
//	provision filters   rebuilds the committed filters, in deploy/wasm, whose sources have changed
//	provision wasm      builds every filter from its sources under .sluice/wasm, with what tests need of them
//
// It works on the checkout in the present folder. SLUICE_ENVOY names an Envoy to
// use as it is, SLUICE_MEDIA_ENGINE, SLUICE_FFMPEG, SLUICE_SPEECH, SLUICE_VOICE and
// SLUICE_TESSERACT likewise, or say "off". Exit status 1 with one line on standard error
// if something is missing and cannot be made, 2 for wrong usage.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"sluice.dev/sluice/dev/programs"
	"sluice.dev/sluice/dev/toolchain"
)

var errUsage = errors.New("usage: provision tools|envoy|engine|ffmpeg|speech|voice|tesseract|filters|wasm")

// media are the programs of the media product by what they are called here.
var media = map[string]programs.Program{
	"engine": programs.Engine, "ffmpeg": programs.FFmpeg, "speech": programs.Speech, "voice": programs.Voice, "tesseract": programs.Tesseract,
}

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
	cfg := toolchain.Config{Root: root, Envoy: os.Getenv("SLUICE_ENVOY"), Own: os.Getenv, Path: os.Getenv("PATH"), Progress: os.Stderr}
	if p, ok := media[args[0]]; ok {
		return show(toolchain.Provision(ctx, cfg, p))
	}
	switch args[0] {
	case "tools":
		return tools(ctx, cfg)
	case "envoy":
		return show(toolchain.ProvisionEnvoy(ctx, cfg))
	case "filters":
		return toolchain.Commit(ctx, cfg)
	case "wasm":
		return wasm(ctx, cfg)
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

// wasm builds all filters.
func wasm(ctx context.Context, cfg toolchain.Config) error {
	tc, err := toolchain.ProvisionTinyGo(ctx, cfg)
	if err != nil {
		return err
	}
	filters, err := toolchain.Programs(cfg.Root)
	if err != nil {
		return err
	}
	return toolchain.BuildFilters(ctx, cfg, tc, filters)
}

// tools makes everything. That a stack can do without the engines and ffmpeg is
// said, and no failure; an interrupt is one.
func tools(ctx context.Context, cfg toolchain.Config) error {
	if _, err := toolchain.ProvisionTinyGo(ctx, cfg); err != nil {
		return err
	}
	if _, err := toolchain.ProvisionEnvoy(ctx, cfg); err != nil {
		return err
	}
	for _, p := range programs.All {
		if _, err := toolchain.Provision(ctx, cfg, p); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "tools: going on without it:", err)
		}
	}
	return ctx.Err()
}
