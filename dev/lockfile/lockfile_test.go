package lockfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/dev/lockfile"
)

func TestASecondTakerLearnsTheHolder(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "x.lock")
	first, err := lockfile.TryTake(name)
	if err != nil {
		t.Fatal(err)
	}
	_, err = lockfile.TryTake(name)
	held := new(lockfile.HeldError)
	if !errors.As(err, &held) || held.PID != os.Getpid() || held.Name != name {
		t.Fatalf("second take: %v, want this process named as holder", err)
	}
	first.Release()
	second, err := lockfile.TryTake(name)
	if err != nil {
		t.Fatalf("take after release: %v", err)
	}
	second.Release()
}

func TestTakeWaitsForTheHolder(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "x.lock")
	first, err := lockfile.TryTake(name)
	if err != nil {
		t.Fatal(err)
	}
	waiting := 0
	second, err := lockfile.Take(name, func(*lockfile.HeldError) {
		waiting++
		first.Release()
	})
	if err != nil {
		t.Fatal(err)
	}
	second.Release()
	if waiting != 1 {
		t.Fatalf("told of waiting %d times, want once", waiting)
	}
}

func TestTakeNeedsAFolder(t *testing.T) {
	t.Parallel()
	if _, err := lockfile.Take(filepath.Join(t.TempDir(), "no", "x.lock"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("err = %v, want that the folder does not exist", err)
	}
}
