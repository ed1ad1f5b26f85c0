// Command bake builds the images of the platform, and writes the secrets that the
// compose file needs. Where no registry is reached it makes the bases from what
// this machine has: the pinned Envoy, and PostgreSQL's binaries.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"sluice.dev/sluice/deploy/docker/engine"
	"sluice.dev/sluice/deploy/engines"
	"sluice.dev/sluice/dev/programs"
	"sluice.dev/sluice/dev/toolchain"
)

func main() {
	var b bakery
	flag.StringVar(&b.base, "base", "", "image that has Envoy at /usr/local/bin/envoy, such as envoyproxy/envoy:v1.40.0; empty: one made of -envoy")
	flag.StringVar(&b.database, "postgres", "", "image of PostgreSQL, such as postgres:17; empty: one made of this machine's")
	flag.StringVar(&b.envoy, "envoy", "", "Envoy's binary")
	flag.StringVar(&b.tools, "tools", ".sluice/tools", "folder for the programs of the media product, which are fetched if they are missing")
	flag.StringVar(&b.out, "out", ".sluice/docker", "folder for what images are made of, and for secrets.env")
	flag.Parse()
	if err := b.bake(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "docker:", err)
		os.Exit(1)
	}
}

// bakery is where images are built.
type bakery struct{ base, database, envoy, tools, out string }

// recipes is the folder of the Dockerfiles, seen from the root of the checkout.
const recipes = "deploy/docker"

func (b *bakery) bake(ctx context.Context) error {
	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(b.out, "dockerd.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	if err := engine.Ensure(ctx, engine.Local(os.Geteuid() == 0, log)); err != nil {
		return err
	}
	steps := []func(context.Context) error{b.binary, b.product, b.media, b.edge, b.secrets}
	if b.base == "" {
		b.base = "sluice-envoy:local"
		steps = append([]func(context.Context) error{b.localEnvoy}, steps...)
	}
	if b.database == "" {
		b.database = "sluice-postgres:local"
		steps = append(steps, b.localPostgres)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// command runs a program to its end, and shows what it says if it fails.
func command(ctx context.Context, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", name, args, err, out)
	}
	return nil
}

// build makes an image of a folder.
func (b *bakery) build(ctx context.Context, tag, recipe, dir string, args ...string) error {
	argv := append([]string{"build", "--quiet", "--tag", tag, "--file", filepath.Join(recipes, recipe)}, args...)
	if err := command(ctx, []string{"DOCKER_BUILDKIT=0"}, "docker", append(argv, dir)...); err != nil {
		return err
	}
	fmt.Println("built", tag)
	return nil
}

// binary builds the product without anything of the machine in it.
func (b *bakery) binary(ctx context.Context) error {
	return command(ctx, []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", filepath.Join(b.out, "sluice"), "./cmd/sluice")
}

// certificates are where systems keep the authorities that they trust.
const certificates = "/etc/ssl/certs/ca-certificates.crt"

func (b *bakery) product(ctx context.Context) error {
	dir, err := b.folder("product", "state")
	if err != nil {
		return err
	}
	t := tree{dir}
	return errors.Join(t.link(filepath.Join(b.out, "sluice"), "sluice"), t.optional(certificates, "ca-certificates.crt"),
		b.build(ctx, "sluice:local", "sluice.Dockerfile", dir))
}

// media is the image of processes that run programs on strangers' files.
func (b *bakery) media(ctx context.Context) error {
	dir, err := b.folder("media", "state", "root/tmp")
	if err != nil {
		return err
	}
	checkout, err := os.Getwd()
	if err != nil {
		return err
	}
	t, root := tree{dir}, tree{filepath.Join(dir, "root")}
	// Neither variables nor PATH count: an image has what is pinned.
	made := toolchain.Config{Root: checkout, Tools: b.tools, Own: func(string) string { return "" }, Path: onlyGo(os.Getenv("PATH")), Progress: os.Stdout}
	err = errors.Join(t.link(filepath.Join(b.out, "sluice"), "sluice"), t.optional(certificates, "ca-certificates.crt"),
		engines.Put(ctx, func(ctx context.Context, p programs.Program) (string, error) {
			return toolchain.Provision(ctx, made, p)
		}, root.root))
	if err != nil {
		return err
	}
	var args []string
	for _, variable := range engines.Env() {
		args = append(args, "--build-arg", variable)
	}
	for _, p := range engines.Programs {
		if err := root.libraries(ctx, filepath.Join(root.root, engines.Path(p))); err != nil {
			return err
		}
	}
	return b.build(ctx, "sluice-media:local", "media.Dockerfile", dir, args...)
}

// onlyGo is the folder of path that has Go in it.
func onlyGo(path string) string {
	for _, dir := range filepath.SplitList(path) {
		if info, err := os.Stat(filepath.Join(dir, "go")); err == nil && info.Mode().IsRegular() {
			return dir
		}
	}
	return ""
}

func (b *bakery) edge(ctx context.Context) error {
	dir, err := b.folder("edge", "state")
	if err != nil {
		return err
	}
	t := tree{dir}
	return errors.Join(t.link(filepath.Join(b.out, "sluice"), "sluice"), b.build(ctx, "sluice-edge:local", "edge.Dockerfile", dir, "--build-arg", "BASE="+b.base))
}

// folder is an empty one for what an image is made of, with folders in it. What
// is mounted there later takes over the mode, so anybody may write to them.
func (b *bakery) folder(name string, inner ...string) (string, error) {
	dir := filepath.Join(b.out, name)
	err := os.RemoveAll(dir)
	for _, i := range append(inner, ".") {
		err = errors.Join(err, os.MkdirAll(filepath.Join(dir, i), 0o755))
		if base := filepath.Base(i); base == "tmp" || base == "postgresql" {
			err = errors.Join(err, os.Chmod(filepath.Join(dir, i), 0o777|os.ModeSticky))
		}
	}
	return dir, err
}
