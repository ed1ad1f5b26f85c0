// Command release builds what a version of Sluice is made of into a folder: for
// linux/amd64 and linux/arm64 an archive of the binary, which has the filters in it,
// and the images for containers; a compose file, a bill of materials (CycloneDX) and
// SHA256SUMS. The same commit and the same Go give the same bytes, wherever it is
// built: `release -check` builds twice in different folders and compares. No
// container engine is needed.
//
//	release [-out FOLDER] [-check]
//	release -binary FILE -out FOLDER    only packs the archive of this machine, of a binary that is built
//
// It works on the checkout in the present folder. Exit status 1 with one line on
// standard error if something fails or differs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	out := flag.String("out", "", "folder to build into (default .sluice/release/VERSION)")
	binary := flag.String("binary", "", "pack the archive of this machine with this binary, and do nothing else")
	check := flag.Bool("check", false, "build the last commit twice in different folders and compare")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, *out, *binary, *check)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out, binary string, check bool) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	version, err := git(ctx, root, "describe", "--tags", "--always", "--dirty")
	if err != nil {
		return err
	}
	seconds, err := git(ctx, root, "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return err
	}
	b := builder{version: version, time: time.Unix(at, 0).UTC(), cache: filepath.Join(root, ".sluice", "downloads"),
		say: func(line string) { fmt.Fprintln(os.Stderr, "release:", line) }}
	if binary != "" {
		b.host = binary
		return b.archive(ctx, root, binary, runtime.GOARCH, out)
	}
	if check {
		return twice(ctx, b, root)
	}
	if out == "" {
		out = filepath.Join(root, ".sluice", "release", version)
	}
	sums, err := b.build(ctx, root, out)
	if err == nil {
		fmt.Printf("%s\n%s", out, sums)
	}
	return err
}

// twice builds the last commit in two folders and compares the sums.
func twice(ctx context.Context, b builder, root string) error {
	if strings.HasSuffix(b.version, "-dirty") {
		return errors.New("the tree is dirty: commit first, since the last commit is what is checked")
	}
	var all [2]string
	for i, name := range []string{"one", "a/second-and-longer"} {
		dir, err := os.MkdirTemp("", "sluice-release-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		source := filepath.Join(dir, name)
		if err := export(ctx, root, source); err != nil {
			return err
		}
		if all[i], err = b.build(ctx, source, filepath.Join(dir, "out")); err != nil {
			return err
		}
	}
	if all[0] != all[1] {
		return fmt.Errorf("two builds differ:\n%s\n%s", all[0], all[1])
	}
	fmt.Printf("two builds in different folders are the same:\n%s", all[0])
	return nil
}

// export copies the last commit into a new folder.
func export(ctx context.Context, root, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	archive := to + ".tar"
	if _, err := git(ctx, root, "archive", "-o", archive, "HEAD"); err != nil {
		return err
	}
	text, err := exec.CommandContext(ctx, "tar", "-xf", archive, "-C", to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("tar: %w: %s", err, text)
	}
	return nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(text)), nil
}
