package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ulikunitz/xz"

	"sluice.dev/sluice/dev/fetch"
)

// packages are what Envoy and PostgreSQL load, the shell that initdb wants, and the
// certificate authorities: of Debian 12, by architecture. Debian removes a package
// from its pool when a point release brings a newer one; its version, size and sum
// are then to be changed here.
var packages = map[string][]fetch.File{
	"amd64": {
		deb("glibc/libc6_2.36-9+deb12u14_amd64", "ba4f88f73dbc3ae9055f3c20f4523bfdbaf1ad13ff95e258924f77d20b4fbedf", 2759320),
		deb("glibc/libc-bin_2.36-9+deb12u14_amd64", "e667401af91fad95f15b3ebd25d1abd8373fd18b00dc32219678413170544e84", 609144), // the locale C.UTF-8
		deb("gcc-12/libgcc-s1_12.2.0-14+deb12u1_amd64", "3016e62cb4b7cd8038822870601f5ed131befe942774d0f745622cc77d8a88f7", 49856),
		deb("gcc-12/libstdc++6_12.2.0-14+deb12u1_amd64", "5cd3171216d4ab0fc911cfe9c35509bf2dd8f47761c43b7f6a4296701551a24d", 612604),
		deb("busybox/busybox-static_1.35.0-4+deb12u1+b1_amd64", "3d3fdbe91d4660c873e14b092c213fe81c1da6362daa236eb25d0171eb108744", 928188),
		authorities,
	},
	"arm64": {
		deb("glibc/libc6_2.36-9+deb12u14_arm64", "01f4330719fd4f65580e16ea5a0527f372fca750e8f588d26deaf09f2d3b1cf4", 2324660),
		deb("glibc/libc-bin_2.36-9+deb12u14_arm64", "65166ea54c05213c4f48d889138179f1b7345edd05031a9af276aa5fb4a45c05", 534528), // the locale C.UTF-8
		deb("gcc-12/libgcc-s1_12.2.0-14+deb12u1_arm64", "576926b283613db80168ddf76380a3bd877602778cf0d226caa7bfbfa71eacf3", 34816),
		deb("gcc-12/libstdc++6_12.2.0-14+deb12u1_arm64", "26e138c677a985775331373828a6c286c551ff397cb735d00e2383cb273d1cb2", 556608),
		deb("busybox/busybox-static_1.35.0-4+deb12u1+b1_arm64", "732c9135564fc71337e0e05fb4da4d11e6c28c1834bce3e405e575afef2a52f5", 822236),
		authorities,
	},
}

var authorities = deb("ca-certificates/ca-certificates_20230311+deb12u1_all", "0d5f444f594e48c1e16a41d8fc628a09b24c658916a1274025c2330f2a802bed", 155260)

func deb(name, sum string, size int64) fetch.File {
	return fetch.File{
		Name: strings.ReplaceAll(path.Base(name), "_", " "), Source: "Debian", SHA256: sum, Size: size,
		URL: "https://deb.debian.org/debian/pool/main/" + name[:1] + "/" + name + ".deb",
	}
}

// debian puts what is wanted of the packages below root: libraries, busybox as the
// shell, the authorities as one file, and the packages' copyright notices.
func (b builder) debian(ctx context.Context, arch, root string) error {
	cfg := b.fetcher(arch)
	for _, p := range packages[arch] {
		name, err := cfg.File(ctx, p)
		if err == nil {
			err = unpackDeb(name, root)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	if err := bundle(root); err != nil {
		return err
	}
	return os.Symlink("busybox", filepath.Join(root, "bin", "sh"))
}

// unpackDeb unpacks what is wanted of a Debian package.
func unpackDeb(name, root string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := member(f, "data.tar.xz")
	if err != nil {
		return err
	}
	plain, err := xz.NewReader(data)
	if err != nil {
		return err
	}
	into, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer func() { _ = into.Close() }()
	entries := tar.NewReader(plain)
	for {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := unpackEntry(into, h, entries); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

// wanted says which files of the packages an image needs.
func wanted(name string) bool {
	if strings.Contains(name, "/gconv") || strings.Contains(name, "/audit/") {
		return false
	}
	for _, pattern := range []string{"lib/*", "lib64/*", "usr/lib/*/lib*", "usr/lib/locale/C.utf8/*", "bin/busybox", "usr/share/ca-certificates/*", "usr/share/doc/*/copyright"} {
		if strings.HasSuffix(pattern, "/*") && strings.HasPrefix(name, strings.TrimSuffix(pattern, "*")) {
			return true
		}
		if ok, _ := path.Match(pattern, name); ok {
			return true
		}
	}
	return false
}

func unpackEntry(root *os.Root, h *tar.Header, in io.Reader) error {
	name := path.Clean(h.Name)
	if h.Typeflag == tar.TypeDir || !wanted(name) {
		return nil
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeSymlink {
		return root.Symlink(h.Linkname, name)
	}
	if h.Typeflag != tar.TypeReg {
		return fmt.Errorf("an entry of kind %q is not expected", h.Typeflag)
	}
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, os.FileMode(h.Mode).Perm())
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return errors.Join(out.Chmod(os.FileMode(h.Mode).Perm()), out.Close())
}

// member finds a file in an archive of ar, which packages of Debian are.
func member(f io.Reader, name string) (io.Reader, error) {
	magic := make([]byte, 8)
	if _, err := io.ReadFull(f, magic); err != nil || string(magic) != "!<arch>\n" {
		return nil, errors.New("this is no package of Debian")
	}
	for {
		var header [60]byte
		if _, err := io.ReadFull(f, header[:]); err != nil {
			return nil, fmt.Errorf("the package holds no %s", name)
		}
		size, err := strconv.ParseInt(strings.TrimSpace(string(header[48:58])), 10, 64)
		if err != nil || size < 0 {
			return nil, errors.New("the package is broken")
		}
		if strings.TrimRight(string(header[:16]), " /") == name {
			return io.LimitReader(f, size), nil
		}
		if _, err := io.CopyN(io.Discard, f, size+size%2); err != nil {
			return nil, err
		}
	}
}

// bundle makes one file of the authorities, where programs look for it.
func bundle(root string) error {
	from := filepath.Join(root, "usr/share/ca-certificates")
	files, err := filepath.Glob(filepath.Join(from, "mozilla", "*.crt"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, errors.New("there are no certificate authorities"))
	}
	slices.Sort(files)
	var all []byte
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		all = append(all, text...)
	}
	to := filepath.Join(root, "etc/ssl/certs/ca-certificates.crt")
	return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, all, 0o644), os.RemoveAll(from))
}
