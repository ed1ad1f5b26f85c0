package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed postgres.sh
var postgresEntry []byte

// accounts are the users that the images know by name.
const accounts = "root:x:0:0::/:/bin/sh\npostgres:x:999:999::/var/lib/postgresql:/bin/sh\nsluice:x:65532:65532::/state:/bin/sh\n"

// localEnvoy is a base of the pinned Envoy and the libraries that it loads.
func (b *bakery) localEnvoy(ctx context.Context) error {
	if b.envoy == "" {
		return errors.New("no Envoy is given: run make docker")
	}
	dir, err := b.folder("envoy", "etc", "tmp")
	if err != nil {
		return err
	}
	t := tree{dir}
	return errors.Join(t.program(ctx, b.envoy, "usr/local/bin/envoy"), t.optional(certificates, certificates[1:]), t.resolver(),
		os.WriteFile(filepath.Join(dir, "etc/passwd"), []byte(accounts), 0o644), b.build(ctx, "sluice-envoy:local", "files.Dockerfile", dir))
}

// resolver puts in how names are looked up: glibc loads it when it is asked to.
func (t tree) resolver() error {
	if err := os.MkdirAll(filepath.Join(t.root, "etc"), 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(t.root, "etc/nsswitch.conf"), []byte("passwd: files\nhosts: files dns\n"), 0o644)
}

// localPostgres is PostgreSQL as this machine has it.
func (b *bakery) localPostgres(ctx context.Context) error {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return errors.Join(err, errors.New("no PostgreSQL is installed: install it, or give an image by POSTGRES="))
	}
	home := filepath.Dir(filepath.Dir(slices.Max(found)))
	dir, err := b.folder("postgres", "root/etc", "root/tmp", "root/run/postgresql", "data")
	if err != nil {
		return err
	}
	t := tree{filepath.Join(dir, "root")}
	version := filepath.Base(home)
	err = errors.Join(t.all(home), t.all("/usr/share/postgresql/"+version), t.all("/usr/share/zoneinfo"), t.program(ctx, "/bin/sh", "bin/sh"), t.resolver())
	programs, globErr := filepath.Glob(filepath.Join(home, "bin", "*"))
	plugins, pluginErr := filepath.Glob(filepath.Join(home, "lib", "*.so"))
	err = errors.Join(err, globErr, pluginErr)
	for _, name := range append(programs, plugins...) {
		err = errors.Join(err, t.program(ctx, name, name))
	}
	for _, name := range []string{"cat", "chmod", "mkdir", "rm"} {
		err = errors.Join(err, t.program(ctx, "/bin/"+name, "bin/"+name))
	}
	entry := "#!/bin/sh\nPATH=" + home + "/bin:/bin\nexport PATH\n" + string(postgresEntry)
	return errors.Join(err, os.WriteFile(filepath.Join(t.root, "etc/passwd"), []byte(accounts), 0o644),
		os.WriteFile(filepath.Join(t.root, "entry.sh"), []byte(entry), 0o755),
		b.build(ctx, "sluice-postgres:local", "postgres.Dockerfile", dir, "--build-arg", "BIN="+home+"/bin"))
}

// secrets writes those of a platform, once: with other ones it could not read
// what it has stored.
func (b *bakery) secrets(context.Context) error {
	name := filepath.Join(b.out, "secrets.env")
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	var text strings.Builder
	for _, v := range []string{"POSTGRES_PASSWORD", "SLUICE_IDENTITY_SECRETS", "SLUICE_SECRETS_KEY", "SLUICE_FEED_TOKEN"} {
		var secret [32]byte
		rand.Read(secret[:])
		fmt.Fprintf(&text, "%s=%s\n", v, hex.EncodeToString(secret[:]))
	}
	fmt.Fprintf(&text, "SLUICE_POSTGRES_IMAGE=%s\nSLUICE_BALANCER_IMAGE=%s\n", b.database, b.base)
	return os.WriteFile(name, []byte(text.String()), 0o600)
}
