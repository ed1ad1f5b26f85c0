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
	c.script(t, "go", "true")
	c.cfg.Path = filepath.Join(c.cfg.Root, "bin")
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
	_, err := ProvisionEngine(context.Background(), c.cfg)
	checkError(t, err, "mediamtx", "with Go", "SLUICE_MEDIA_ENGINE", "off")
	c.script(t, "go", "true")
	c.cfg.Path = filepath.Join(c.cfg.Root, "bin")
	_, err = ProvisionEngine(context.Background(), c.cfg)
	checkError(t, err, "mediamtx", "the network is down", "SLUICE_MEDIA_ENGINE", "off")
}

func TestAnFFmpegThatIsThereIsTakenAsItIs(t *testing.T) {
	t.Parallel()
	c := newCheckout(t, nil)
	c.write(t, ".sluice/tools/ffmpeg-"+programs.FFmpeg.Version, "#!/bin/sh\n")
	if path, err := ProvisionFFmpeg(context.Background(), c.cfg); err != nil || path != programs.FFmpeg.Pinned(c.cfg.dir()) {
		t.Error(path, err)
	}
	c.cfg.FFmpeg = programs.Off
	if path, err := ProvisionFFmpeg(context.Background(), c.cfg); err != nil || path != programs.Off {
		t.Error(path, err)
	}
}

func TestASpeechEngineThatIsThereIsTakenAsItIs(t *testing.T) {
	t.Parallel()
	c := newCheckout(t, nil)
	c.write(t, ".sluice/tools/speech-"+programs.Speech.Version+"/"+programs.Speech.Inside, "#!/bin/sh\n")
	if path, err := ProvisionSpeech(context.Background(), c.cfg); err != nil || path != programs.Speech.Pinned(c.cfg.dir()) {
		t.Error(path, err)
	}
	c.cfg.Speech = programs.Off
	if path, err := ProvisionSpeech(context.Background(), c.cfg); err != nil || path != programs.Off {
		t.Error(path, err)
	}
}
