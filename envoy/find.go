package envoy

import (
	_ "embed" // the version file
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed VERSION
var versionFile string

// Version is the Envoy that Sluice is built for and tested with.
func Version() string { return strings.TrimSpace(versionFile) }

// ErrNotFound says that there is no usable Envoy; the text names the remedies.
var ErrNotFound = fmt.Errorf("no Envoy %s found: run `sluice tools install`, or set SLUICE_ENVOY to its binary", Version())

// FindConfig says where to look for Envoy.
type FindConfig struct {
	// Binary is the user's choice (SLUICE_ENVOY), of whatever version. Empty: none.
	Binary string
	// Path lists folders as $PATH does; an Envoy there counts at Version only.
	Path string
	// Tools is the folder of pinned tools (.sluice/tools). Empty: none.
	Tools string
}

// PinnedPath is where `make tools` puts Envoy below the tools folder.
func PinnedPath(tools string) string { return filepath.Join(tools, "envoy-"+Version()) }

// Find returns the path of the Envoy to run: Binary, else one on Path at
// Version, else the pinned one. Returns ErrNotFound if there is none, and an
// error that names the file if Binary cannot be run.
func Find(cfg FindConfig) (string, error) {
	if cfg.Binary != "" {
		path, err := filepath.Abs(cfg.Binary)
		if err != nil || !executable(path) {
			return "", fmt.Errorf("SLUICE_ENVOY names %s, which is no program that can be run", cfg.Binary)
		}
		return path, nil
	}
	for _, dir := range filepath.SplitList(cfg.Path) {
		if path := filepath.Join(dir, "envoy"); filepath.IsAbs(path) && executable(path) && isPinned(path) {
			return path, nil
		}
	}
	if cfg.Tools != "" {
		if path := PinnedPath(cfg.Tools); executable(path) {
			return path, nil
		}
	}
	return "", ErrNotFound
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// isPinned asks the binary for its version.
func isPinned(path string) bool {
	out, err := exec.Command(path, "--version").Output()
	return err == nil && reportsVersion(string(out), Version())
}

// reportsVersion reads "envoy  version: <commit>/1.40.0/Clean/RELEASE/BoringSSL".
func reportsVersion(output, version string) bool {
	fields := strings.Split(output, "/")
	return len(fields) > 1 && fields[1] == version
}
