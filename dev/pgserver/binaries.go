package pgserver

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strconv"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// MinMajor is the oldest PostgreSQL that the schema runs on.
const MinMajor = 15

// distroBins is where Debian and its kin keep one folder for each major version.
const distroBins = "/usr/lib/postgresql/*/bin"

// findBinaries returns the folder with the newest postgres and initdb, from
// path, then the distribution's folders, then a download of embedded-postgres.
func findBinaries(path string, h home) (string, error) {
	dirs := filepath.SplitList(path)
	system, _ := filepath.Glob(distroBins)
	if bin := newest(append(system, dirs...)); bin != "" {
		return bin, nil
	}
	bin, err := embeddedBinaries(h)
	if err != nil {
		return "", fmt.Errorf("no PostgreSQL >= %d found and none could be fetched (%w): install it (apt-get install postgresql) or set SLUICE_DATABASE_URL", MinMajor, err)
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

// embeddedBinaries lets embedded-postgres unpack a server below the home. As
// root its own start fails after that, which does not matter: only the binaries
// are wanted.
func embeddedBinaries(h home) (string, error) {
	root := filepath.Join(h.base, "binaries")
	bin := filepath.Join(root, "bin")
	if newest([]string{bin}) != "" {
		return bin, nil
	}
	port, err := freePort()
	if err != nil {
		return "", err
	}
	scratch := filepath.Join(h.base, "embedded-scratch")
	defer func() { _ = os.RemoveAll(scratch) }()
	db := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(embeddedpostgres.V17).Port(uint32(port)).Logger(io.Discard).
		BinariesPath(root).CachePath(scratch).RuntimePath(filepath.Join(scratch, "run")))
	startErr := db.Start()
	if startErr == nil {
		startErr = db.Stop()
	}
	if newest([]string{bin}) == "" {
		return "", errors.Join(errors.New("embedded-postgres"), startErr)
	}
	return bin, h.own(root)
}
