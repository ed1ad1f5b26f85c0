package fetch

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/ulikunitz/xz"
)

// maxUnpacked bounds what one archive may become: ten times what they are.
const maxUnpacked = 1 << 30

// extract puts the one file of a zip archive whose path ends like inside, which may
// have the signs of path.Match in its last element, into the file to, as a program.
func extract(archive, inside, to string) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer func() { _ = z.Close() }()
	for _, f := range z.File {
		if !matches(f.Name, inside) {
			continue
		}
		in, err := f.Open()
		if err != nil {
			return err
		}
		defer in.Close()
		err = write(to+".new", in)
		if err == nil {
			err = os.Rename(to+".new", to)
		}
		return err
	}
	return fmt.Errorf("the archive holds no %s", inside)
}

// take puts files of a zip archive into a folder, which none of them leaves; see part.
// Each that is named must be there.
func take(archive string, which map[string]string, dir string) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer func() { _ = z.Close() }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	missing, taken := maps.Clone(which), map[string]bool{}
	left := int64(maxUnpacked)
	for _, f := range z.File {
		to := place(f.Name, which)
		if to == "" || taken[to] {
			continue
		}
		taken[to] = true // the first of those that end alike
		n, err := copyEntry(root, filepath.FromSlash(to), f, left)
		if left -= n; err == nil && left <= 0 {
			err = errors.New("the archive is too large")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		maps.DeleteFunc(missing, func(at, _ string) bool { return strings.HasPrefix(f.Name, at) || matches(f.Name, at) })
	}
	for at := range missing {
		return fmt.Errorf("the archive holds no %s", at)
	}
	return nil
}

// copyEntry unpacks one file, of most bytes.
func copyEntry(root *os.Root, to string, f *zip.File, most int64) (n int64, err error) {
	if err := root.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return 0, err
	}
	in, err := f.Open()
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := root.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return 0, err
	}
	n, err = io.Copy(out, io.LimitReader(in, most))
	return n, errors.Join(err, out.Close())
}

// matches compares a path with the end of another, element by element.
func matches(name, end string) bool {
	want := strings.Split(strings.Trim(end, "/"), "/")
	have := strings.Split(name, "/")
	if len(have) < len(want) {
		return false
	}
	for i, element := range have[len(have)-len(want):] {
		if ok, err := path.Match(want[i], element); err != nil || !ok {
			return false
		}
	}
	return true
}

// write makes a program of what is read.
func write(to string, in io.Reader) error {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := out.Chmod(0o755); err != nil { // whatever the umask
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, maxUnpacked))
	if err == nil && n == maxUnpacked {
		err = errors.New("the program is too large")
	}
	return errors.Join(err, out.Close())
}

// unpackServer makes the folder dir of the archive of a server.
func unpackServer(archive, dir string) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer func() { _ = z.Close() }()
	for _, f := range z.File {
		if !strings.HasSuffix(f.Name, ".txz") {
			continue
		}
		in, err := f.Open()
		if err != nil {
			return err
		}
		defer in.Close()
		fresh := dir + ".new"
		if err := errors.Join(os.RemoveAll(fresh), os.Mkdir(fresh, 0o755)); err != nil {
			return err
		}
		if err := untar(in, fresh); err != nil {
			return errors.Join(err, os.RemoveAll(fresh))
		}
		return os.Rename(fresh, dir)
	}
	return errors.New("the archive holds no .txz")
}

// untar unpacks a tar archive that is compressed with xz. An entry that would lie
// outside of dir fails, as os.Root has it.
func untar(in io.Reader, dir string) error {
	plain, err := xz.NewReader(bufio.NewReaderSize(in, 1<<20))
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	limited := &io.LimitedReader{R: plain, N: maxUnpacked}
	entries := tar.NewReader(limited)
	for {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) && limited.N > 0 {
			return nil
		}
		if err != nil {
			return err
		}
		if err := entry(root, h, entries); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

// entry unpacks one folder, file or link.
func entry(root *os.Root, h *tar.Header, in io.Reader) error {
	name := filepath.Clean(h.Name)
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeReg:
		mode := fs.FileMode(0o644)
		if h.Mode&0o111 != 0 {
			mode = 0o755
		}
		out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		defer out.Close()
		if err := out.Chmod(mode); err != nil {
			return err
		}
		if _, err := io.Copy(out, in); err != nil {
			return err
		}
		return out.Close()
	case tar.TypeSymlink:
		if !filepath.IsLocal(filepath.Join(filepath.Dir(name), h.Linkname)) || filepath.IsAbs(h.Linkname) {
			return fmt.Errorf("a link to %s leads out of the folder", h.Linkname)
		}
		return root.Symlink(h.Linkname, name)
	}
	return fmt.Errorf("an entry of kind %q is not expected", h.Typeflag)
}
