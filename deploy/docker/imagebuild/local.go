package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
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

// made are the secrets of a platform that are made once: with other ones it could
// not read what it has stored, nor sign in.
var made = []string{
	"POSTGRES_PASSWORD", "SLUICE_IDENTITY_SECRETS", "SLUICE_SECRETS_KEY", "SLUICE_FEED_TOKEN",
	"CONTROLPLANE_PASSWORD", "WORKER_PASSWORD", "RUNTIME_PASSWORD", "MEDIA_PASSWORD",
}

// derived are those of products, which follow from the platform's, by product and
// by what `sluice secrets product` calls them.
var derived = []struct{ name, product, variable string }{
	{"MEDIA_IDENTITY_SECRETS", "media", "SLUICE_IDENTITY_SECRETS"},
	{"MEDIA_SECRETS_KEY", "media", "SLUICE_SECRETS_KEY"},
	{"RUNTIME_IDENTITY_SECRETS", "runtime", "SLUICE_IDENTITY_SECRETS"},
}

// secrets writes secrets.env. What is there stays, and what is missing is made;
// what follows from others follows them.
func (b *bakery) secrets(ctx context.Context) error {
	name := filepath.Join(b.out, "secrets.env")
	have, order, err := readEnv(name)
	if err != nil {
		return err
	}
	set := func(variable, value string) {
		if _, there := have[variable]; !there {
			order = append(order, variable)
		}
		have[variable] = value
	}
	for _, v := range made {
		if have[v] == "" {
			var secret [32]byte
			rand.Read(secret[:])
			set(v, hex.EncodeToString(secret[:]))
		}
	}
	for _, d := range derived {
		text, err := b.productSecrets(ctx, d.product, have)
		if err != nil {
			return err
		}
		set(d.name, text[d.variable])
	}
	for v, image := range map[string]string{"SLUICE_POSTGRES_IMAGE": b.database, "SLUICE_BALANCER_IMAGE": b.base} {
		if _, there := have[v]; !there {
			set(v, image)
		}
	}
	var text strings.Builder
	for _, v := range order {
		fmt.Fprintf(&text, "%s=%s\n", v, have[v])
	}
	if err := os.WriteFile(name+".new", []byte(text.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// productSecrets asks the product, which has just been built.
func (b *bakery) productSecrets(ctx context.Context, product string, have map[string]string) (map[string]string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(b.out, "sluice"), "secrets", "product", product)
	cmd.Env = []string{"SLUICE_IDENTITY_SECRETS=" + have["SLUICE_IDENTITY_SECRETS"], "SLUICE_SECRETS_KEY=" + have["SLUICE_SECRETS_KEY"]}
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("derive the secrets of %s: %w", product, err)
	}
	values, _ := parseEnv(string(out))
	return values, nil
}

// readEnv reads a file of variables, if there is one, and their order.
func readEnv(name string) (values map[string]string, order []string, err error) {
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	values, order = parseEnv(string(text))
	return values, order, nil
}

func parseEnv(text string) (values map[string]string, order []string) {
	values = map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(name, "#") {
			values[name], order = value, append(order, name)
		}
	}
	return values, order
}
