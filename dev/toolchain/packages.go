package toolchain

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// llvm is where Debian keeps the LLVM that TinyGo is built against.
const llvm = "/usr/lib/llvm-19"

// need is a file that must be there, and the Debian package that brings it.
type need struct{ file, pkg string }

// tinygoNeeds are what a TinyGo without its own bundle takes from the machine,
// when it is built and whenever it compiles a filter.
var tinygoNeeds = []need{
	{llvm + "/bin/llvm-config", "llvm-19-dev"},
	{llvm + "/include/clang-c/Index.h", "libclang-19-dev"},
	{llvm + "/bin/wasm-ld", "lld-19"},
	{llvm + "/bin/clang", "clang-19"},
	{"/usr/include/wasm32-wasi", "wasi-libc"},
	{llvm + "/lib/clang/19/lib/wasi/libclang_rt.builtins-wasm32.a", "libclang-rt-19-dev-wasm32"},
}

// missingPackages returns the packages of the needs that are not met.
func missingPackages(needs []need) []string {
	var missing []string
	for _, n := range needs {
		if !exists(n.file) {
			missing = append(missing, n.pkg)
		}
	}
	return missing
}

// aptInstall is the command for pkgs, without what only a script needs.
func aptInstall(pkgs []string) string {
	return "apt-get install -y " + strings.Join(pkgs, " ")
}

// installPackages installs pkgs if this process may, else names the command.
func installPackages(ctx context.Context, cfg Config, pkgs []string) error {
	apt := lookPath(cfg.Path, "apt-get")
	if apt == "" {
		return fmt.Errorf("missing packages (Debian's names): %s", strings.Join(pkgs, " "))
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("missing packages: run `sudo %s`, then this again", aptInstall(pkgs))
	}
	cfg.say("installing %s", strings.Join(pkgs, " "))
	install := command{
		argv: append([]string{apt, "-o", "DPkg::Lock::Timeout=300", "install", "-y", "-q", "--no-install-recommends"}, pkgs...),
		env:  []string{"DEBIAN_FRONTEND=noninteractive"},
	}
	_, err := run(ctx, install)
	if err == nil || ctx.Err() != nil {
		return err
	}
	// A fresh machine has no package lists, an old one stale ones.
	if _, err := run(ctx, command{argv: []string{apt, "update", "-q"}}); err != nil {
		return fmt.Errorf("cannot read the package lists: %w; run `apt-get update && %s`", err, aptInstall(pkgs))
	}
	if _, err := run(ctx, install); err != nil {
		return fmt.Errorf("%w; run `%s` to see why", err, aptInstall(pkgs))
	}
	return nil
}
