package main

import (
	"context"
	_ "embed"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"sluice.dev/sluice/deploy/engines"
	"sluice.dev/sluice/dev/fetch"
	"sluice.dev/sluice/dev/programs"
)

//go:embed compose.yaml
var compose string

// accounts are the users that the images know by name.
const accounts = "root:x:0:0::/:/bin/sh\nsluice:x:65532:65532::/state:/bin/sh\n"

// serverDir is where the standalone image has PostgreSQL.
const serverDir = "usr/local/postgresql"

// content is what an image is made of.
type content struct {
	name, command string
	env, layers   []string
}

// contents are the images: the binary alone, with the programs of the media product, an
// edge, and all that `sluice up` runs.
func contents() []content {
	state, envoy := "SLUICE_STATE_DIR=/state", "SLUICE_ENVOY=/usr/local/bin/envoy"
	return []content{
		{"sluice", "help", []string{state}, []string{"bare", "sluice"}},
		{"sluice-media", "media", append(engines.Env(), state), []string{"system", "programs", "sluice"}},
		{"sluice-edge", "edge", []string{state, envoy}, []string{"system", "envoy", "sluice"}},
		{"sluice-standalone", "up", append(engines.Env(), state, envoy, "PATH=/"+serverDir+"/bin:/bin",
			"SLUICE_GATEWAY_ADDR=0.0.0.0:8080", "SLUICE_RUNTIME_ADDR=0.0.0.0:8090", "SLUICE_ADMIN_ADDR=0.0.0.0:9090",
			"SLUICE_PUBLIC_URL=http://127.0.0.1:8080", "SLUICE_RUNTIME_PUBLIC_URL=http://127.0.0.1:8090",
			"SLUICE_RTMP_ADDR=0.0.0.0:1935", "SLUICE_SRT_ADDR=0.0.0.0:8890", "SLUICE_WEBRTC_MEDIA_ADDR=0.0.0.0:8189", "SLUICE_MOQ_ADDR=0.0.0.0:4443", "SLUICE_SIP_ADDR=off",
			"SLUICE_INGEST_HOST=127.0.0.1"), []string{"system", "envoy", "postgres", "programs", "sluice"}},
	}
}

// licences are ours and those of the programs that are in it, as SPDX has them.
func (c content) licences(arch string) string {
	all := []string{"Apache-2.0"}
	if slices.Contains(c.layers, "programs") {
		all = append(all, engineLicence)
		for _, p := range engines.Programs {
			for _, f := range fetch.Of(p, arch) {
				all = append(all, f.Licence)
			}
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " AND ")
}

// images writes the images for an architecture into one file that `docker load` reads. What
// they share is in the file once.
func (b builder) images(ctx context.Context, binary, arch, out string) error {
	layers := map[string]v1.Layer{}
	for name, fill := range map[string]func(context.Context, string, string) error{
		"bare": b.bare, "system": b.system, "envoy": b.envoy, "postgres": b.postgres, "programs": b.programs,
		"sluice": func(_ context.Context, _, root string) error {
			return copyFile(binary, filepath.Join(root, "sluice"), 0o755)
		},
	} {
		layer, err := b.layer(ctx, arch, fill)
		if err != nil {
			return err
		}
		layers[name] = layer
	}
	all := map[name.Reference]v1.Image{}
	for _, i := range contents() {
		image, err := b.image(arch, v1.Config{
			User: "65532:65532", Entrypoint: []string{"/sluice"}, Cmd: []string{i.command}, Env: i.env, WorkingDir: "/state",
			Labels: map[string]string{"org.opencontainers.image.version": b.version, "org.opencontainers.image.licenses": i.licences(arch)},
		}, i.layers, layers)
		if err != nil {
			return err
		}
		tag, err := name.NewTag(i.name+":"+b.version, name.WithDefaultRegistry(""))
		if err != nil {
			return err
		}
		all[tag] = image
	}
	return tarball.MultiRefWriteToFile(filepath.Join(out, "sluice-"+b.version+"-images-linux-"+arch+".tar"), all)
}

// image is of layers, by their names.
func (b builder) image(arch string, config v1.Config, names []string, layers map[string]v1.Layer) (v1.Image, error) {
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		Architecture: arch, OS: "linux", Created: v1.Time{Time: b.time}, Config: config, RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layers[n], History: v1.History{Created: v1.Time{Time: b.time}, CreatedBy: n}}); err != nil {
			return nil, err
		}
	}
	return image, nil
}

// layer packs a folder that fill fills.
func (b builder) layer(ctx context.Context, arch string, fill func(ctx context.Context, arch, root string) error) (v1.Layer, error) {
	dir, err := os.MkdirTemp(b.scratch, "layer-")
	if err != nil {
		return nil, err
	}
	if err := fill(ctx, arch, dir); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		r, w := io.Pipe()
		go func() { w.CloseWithError(pack(w, dir, "", b.time)) }()
		return r, nil
	}, tarball.WithCompressedCaching)
}

// fetcher downloads for an architecture, into a folder that release builds share.
func (b builder) fetcher(arch string) fetch.Config {
	return fetch.Config{Tools: filepath.Join(b.cache, arch), Arch: arch, Say: b.say}
}

// bare is what the binary alone needs: authorities, and folders that it may write.
func (b builder) bare(ctx context.Context, arch, root string) error {
	all, err := os.MkdirTemp(b.scratch, "system-")
	if err != nil {
		return err
	}
	const bundle = "etc/ssl/certs/ca-certificates.crt"
	if err := b.debian(ctx, arch, all); err != nil {
		return err
	}
	return errors.Join(copyFile(filepath.Join(all, bundle), filepath.Join(root, bundle), 0o644), folders(root))
}

// folders are those that processes write, as volumes take over their owner.
func folders(root string) (err error) {
	for _, dir := range []string{"state", "certs", "each/controlplane", "each/edge-1", "each/edge-2", "each/edge-3"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	err = errors.Join(err, os.Mkdir(filepath.Join(root, "tmp"), 0o755))
	return errors.Join(err, os.Chmod(filepath.Join(root, "tmp"), 0o777|os.ModeSticky))
}

// system is what Envoy and PostgreSQL stand on.
func (b builder) system(ctx context.Context, arch, root string) error {
	if err := b.debian(ctx, arch, root); err != nil {
		return err
	}
	etc := map[string]string{"passwd": accounts, "group": "root:x:0:\nsluice:x:65532:\n", "nsswitch.conf": "passwd: files\nhosts: files dns\n"}
	var err error
	for name, text := range etc {
		err = errors.Join(err, os.WriteFile(filepath.Join(root, "etc", name), []byte(text), 0o644))
	}
	return errors.Join(err, folders(root))
}

func (b builder) envoy(ctx context.Context, arch, root string) error {
	from, err := b.fetcher(arch).Envoy(ctx)
	if err != nil {
		return err
	}
	return copyFile(from, filepath.Join(root, "usr/local/bin/envoy"), 0o755)
}

// programs are those of the media product: downloads, and the media engine, which is built.
func (b builder) programs(ctx context.Context, arch, root string) error {
	return engines.Put(ctx, func(ctx context.Context, p programs.Program) (string, error) {
		if p == programs.Engine {
			return b.mediaEngine(arch), nil
		}
		return b.fetcher(arch).Program(ctx, p)
	}, root)
}

func (b builder) postgres(ctx context.Context, arch, root string) error {
	dir := filepath.Join(root, serverDir)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	return b.fetcher(arch).UnpackPostgres(ctx, dir)
}

// writeCompose writes the file that runs the standalone image.
func (b builder) writeCompose(out string) error {
	return os.WriteFile(filepath.Join(out, "compose.yaml"), []byte(strings.ReplaceAll(compose, "VERSION", b.version)), 0o644)
}
