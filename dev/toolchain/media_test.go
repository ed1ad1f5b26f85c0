package toolchain

import (
	"os"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/dev/programs"
)

func TestTheEngineIsBuiltOnceByItsOwnScript(t *testing.T) {
	t.Parallel()
	c := newCheckout(t, nil)
	count := filepath.Join(c.cfg.Root, "count")
	c.write(t, "media/live/engine/tool/build.sh", "echo built >> "+count+"\nprintf '#!/bin/sh' > \"$1\"\n")
	c.script(t, "go", "true")
	c.cfg.Path = filepath.Join(c.cfg.Root, "bin")
	for range 2 {
		path, err := Provision(t.Context(), c.cfg, programs.Engine)
		if err != nil || path != programs.Engine.Pinned(c.cfg.dir()) {
			t.Fatal(path, err)
		}
	}
	if built, err := os.ReadFile(count); err != nil || string(built) != "built\n" {
		t.Errorf("%q, %v", built, err)
	}
	if left, _ := filepath.Glob(filepath.Join(c.cfg.dir(), "tmp-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	c.cfg.Own = off
	if path, err := Provision(t.Context(), c.cfg, programs.Engine); err != nil || path != programs.Off {
		t.Error(path, err)
	}
}

func TestWhatCannotBeHadNamesTheRemedy(t *testing.T) {
	t.Parallel()
	c := newCheckout(t, nil)
	c.write(t, "media/live/engine/tool/build.sh", "echo 'the network is down' >&2; exit 1\n")
	_, err := Provision(t.Context(), c.cfg, programs.Engine)
	checkError(t, err, "mediamtx", "with Go", "SLUICE_MEDIA_ENGINE", "off")
	c.script(t, "go", "true")
	c.cfg.Path = filepath.Join(c.cfg.Root, "bin")
	_, err = Provision(t.Context(), c.cfg, programs.Engine)
	checkError(t, err, "mediamtx", "the network is down", "SLUICE_MEDIA_ENGINE", "off")
}

// off wants none of the programs.
func off(string) string { return programs.Off }

func TestProgramsThatAreThereAreTakenAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, p := range programs.All {
		c := newCheckout(t, nil)
		want := p.Pinned(c.cfg.dir())
		name, err := filepath.Rel(c.cfg.Root, want)
		if err != nil {
			t.Fatal(err)
		}
		c.write(t, name, "#!/bin/sh\n")
		if path, err := Provision(t.Context(), c.cfg, p); err != nil || path != want {
			t.Error(path, err)
		}
		c.cfg.Own = off
		if path, err := Provision(t.Context(), c.cfg, p); err != nil || path != programs.Off {
			t.Error(path, err)
		}
	}
}
