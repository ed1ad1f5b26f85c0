package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
)

// source is where a gateway's program comes from.
type source interface {
	// root is the absolute path of the folder of the installation.
	root() (string, error)
}

// tools is where gateways are installed.
const tools = ".sluice/tools/gateways"

// installed returns the folder with that name, made by make if it is not there and
// -install is given.
func installed(name string, make func(dir string) error) (string, error) {
	dir, err := filepath.Abs(filepath.Join(tools, name))
	if err != nil {
		return "", err
	}
	complete := filepath.Join(dir, "complete")
	if _, err := os.Stat(complete); err == nil {
		return dir, nil
	}
	if !*install {
		return "", errors.New("not installed; `make bench-gateways` does")
	}
	fmt.Fprintln(os.Stderr, "installing", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := make(dir); err != nil {
		return "", err
	}
	return dir, os.WriteFile(complete, nil, 0o644)
}

// in runs a program in dir.
func in(dir, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("%s %s: %w: %s", name, args[0], err, failed.Stderr)
	}
	return out, err
}

// packages are Debian's, unpacked beside the system and not installed into it.
type packages []string

var debian = packages{
	"nginx", "nginx-common", "libnginx-mod-http-ndk", "libnginx-mod-http-lua", "libluajit2-5.1-2", "lua-resty-core", "lua-resty-lrucache", "libpcre3",
	"haproxy", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1",
}

func (p packages) root() (string, error) {
	return installed("debian", func(dir string) error {
		if _, err := in(dir, "apt-get", append([]string{"download"}, p...)...); err != nil {
			return err
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.deb"))
		for _, f := range files {
			_, e := in(dir, "dpkg", "-x", f, dir)
			err = errors.Join(err, e)
		}
		return err
	})
}

// module is a Go program, built in a copy of its own module: one with replacements
// cannot be installed by name.
type module struct{ path, version, program string }

func (m module) root() (string, error) {
	name := path.Base(m.program)
	return installed(name+"-"+m.version, func(dir string) error {
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module fetch\n"), 0o644); err != nil {
			return err
		}
		out, err := in(dir, "go", "mod", "download", "-json", m.path+"@"+m.version)
		if err != nil {
			return err
		}
		var got struct{ Dir string }
		if err := json.Unmarshal(out, &got); err != nil {
			return err
		}
		source := filepath.Join(dir, "source")
		if _, err := in(dir, "cp", "-r", "--no-preserve=mode", got.Dir, source); err != nil {
			return err
		}
		_, err = in(source, "go", "build", "-o", filepath.Join(dir, name), "./"+m.program)
		return errors.Join(err, os.RemoveAll(source))
	})
}
