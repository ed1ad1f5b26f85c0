package toolchain

import (
	"context"
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
	c.cfg.Path = "/usr/bin:/bin"
	for range 2 {
		path, err := ProvisionEngine(context.Background(), c.cfg)
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
	c.cfg.Engine = programs.Off
	if path, err := ProvisionEngine(context.Background(), c.cfg); err != nil || path != programs.Off {
		t.Error(path, err)
	}
}

func TestWhatCannotBeHadNamesTheRemedy(t *testing.T) {
	t.Parallel()
	c := newCheckout(t, nil)
	c.write(t, "media/live/engine/tool/build.sh", "echo 'the network is down' >&2; exit 1\n")
	c.cfg.Path = t.TempDir()
	_, err := ProvisionEngine(context.Background(), c.cfg)
	checkError(t, err, "mediamtx", "the network is down", "SLUICE_MEDIA_ENGINE", "off")
	_, err = ProvisionFFmpeg(context.Background(), c.cfg)
	checkError(t, err, "ffmpeg", "python3", "SLUICE_FFMPEG", "off")
}

func TestFFmpegComesFromItsWheel(t *testing.T) {
	t.Parallel()
	c := newCheckout(t, nil)
	c.script(t, "python3", `test "$2" = venv; mkdir -p "$4/bin" "$4/lib/imageio_ffmpeg/binaries"
printf '#!/bin/sh\ntest "$4" = imageio-ffmpeg==`+programs.FFmpeg.Version+` && echo program > '"$4/lib/imageio_ffmpeg/binaries/ffmpeg-linux" > "$4/bin/pip"
chmod +x "$4/bin/pip"`)
	c.cfg.Path = filepath.Join(c.cfg.Root, "bin")
	// The script's own programs must be found, and no ffmpeg of the machine.
	for _, name := range []string{"mkdir", "chmod"} {
		if err := os.Symlink("/bin/"+name, filepath.Join(c.cfg.Path, name)); err != nil {
			t.Fatal(err)
		}
	}
	path, err := ProvisionFFmpeg(context.Background(), c.cfg)
	if err != nil || path != programs.FFmpeg.Pinned(c.cfg.dir()) {
		t.Fatal(path, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
		t.Error(info, err)
	}
}
