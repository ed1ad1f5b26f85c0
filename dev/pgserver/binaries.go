package pgserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
)

// MinMajor is the oldest PostgreSQL that the schema runs on.
const MinMajor = 15

// distroBins is where Debian and its kin keep one folder for each major version.
const distroBins = "/usr/lib/postgresql/*/bin"

// Download is a server that is unpacked where the machine has none.
type Download struct {
	// Version names its folder.
	Version string
	// Unpack makes dir, with the folders bin, lib and share in it, for everybody to
	// read. It is called once for a Dir.
	Unpack func(ctx context.Context, dir string) error
}

// Installed reports whether the machine has a server that is new enough, in the
// folders of path or where distributions put it.
func Installed(path string) bool { return newest(installed(path)) != "" }

func installed(path string) []string {
	system, _ := filepath.Glob(distroBins)
	return append(system, filepath.SplitList(path)...)
}

// findBinaries returns the folder with postgres and initdb: of the major version
// that made the data in h, if there are any; else the newest of the machine's, else
// the download's.
func findBinaries(ctx context.Context, path string, download Download, h home) (string, error) {
	unpacked := filepath.Join(h.base, "postgresql-"+download.Version)
	dirs := append(installed(path), filepath.Join(unpacked, "bin"))
	if made := h.made(); made != 0 {
		for _, dir := range dirs {
			if major(dir) == made {
				return dir, nil
			}
		}
	}
	if bin := newest(dirs); bin != "" {
		return bin, nil
	}
	if download.Unpack == nil {
		return "", fmt.Errorf("no PostgreSQL >= %d found: install it (apt-get install postgresql) or set SLUICE_DATABASE_URL", MinMajor)
	}
	if err := download.Unpack(ctx, unpacked); err != nil {
		return "", err
	}
	bin := filepath.Join(unpacked, "bin")
	if major(bin) < MinMajor {
		return "", fmt.Errorf("the PostgreSQL in %s does not run here: install it (apt-get install postgresql) or set SLUICE_DATABASE_URL", bin)
	}
	return bin, nil
}

// newest returns the folder of dirs with the highest version that is new
// enough; "" if there is none.
func newest(dirs []string) string {
	sort.SliceStable(dirs, func(i, j int) bool { return major(dirs[i]) > major(dirs[j]) })
	if len(dirs) == 0 || major(dirs[0]) < MinMajor {
		return ""
	}
	return dirs[0]
}

// major is the version of the server in dir: read from the name of the folder
// that Debian gives it, and 0 if dir lacks a binary. Folders named otherwise
// (a PATH entry) are resolved through their links first.
func major(dir string) int {
	postgres, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
	if err != nil {
		return 0
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(postgres), "initdb")); err != nil {
		return 0
	}
	if n, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(postgres)))); err == nil {
		return n
	}
	return askVersion(postgres)
}
