package voice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/process/sandbox"
)

// Builtin speaks with sherpa-onnx and voices of Piper, in a process of its own in the
// sandbox of ffmpeg: a text is a stranger's too, and what reads it is a large program.
type Builtin struct {
	// Program is sherpa-onnx-offline-tts, of a version below 2. In its folder are its
	// library (libonnxruntime.so), the rules of pronunciation (espeak-ng-data), the
	// voices (voices, see list), and its name and version in a line (VERSION).
	Program string
	// Voices is a folder of further voices. Empty: there are none.
	Voices string
}

// Bounds of one text's process.
const (
	maxMemory  = 2 << 30  // bytes
	maxSound   = 64 << 20 // bytes: 25 minutes of 22 kHz
	maxSaid    = 2 << 10  // bytes of its complaints, for the log
	maxVersion = 100      // bytes
)

// Here reports whether there is such a program with a voice.
func (b Builtin) Here() bool {
	if b.Program == "" {
		return false
	}
	_, err := b.Check(context.Background())
	return err == nil
}

func (b Builtin) data() string { return filepath.Join(filepath.Dir(b.Program), "espeak-ng-data") }

// Check reports whether program and voices are there, and names the default voice.
func (b Builtin) Check(ctx context.Context) (string, error) {
	voices, err := b.List(ctx)
	if err == nil {
		_, err = os.Stat(b.Program)
	}
	if err == nil && len(voices) == 0 {
		err = errors.New("there is no voice")
	}
	if err != nil {
		return "", err
	}
	version, err := os.ReadFile(filepath.Join(filepath.Dir(b.Program), "VERSION"))
	if err != nil {
		return voices[0].ID, nil // of a program that an operator has put there
	}
	return decision.Cut(voices[0].ID+" by "+strings.TrimSpace(string(version)), maxVersion), nil
}

// List are the voices beside the program, and the further ones.
func (b Builtin) List(context.Context) ([]Voice, error) {
	folders := []string{filepath.Join(filepath.Dir(b.Program), "voices")}
	if b.Voices != "" {
		folders = append(folders, b.Voices)
	}
	return list(folders...)
}

// Formats is the one that the program writes.
func (b Builtin) Formats() []string { return []string{"wav"} }

// Speak writes the sound into the folder as its input, for ffmpeg. It costs about a
// ninth of the sound's length on one processor, and a second to load the voice.
func (b Builtin) Speak(ctx context.Context, o Order, to ffmpeg.Folder) error {
	voices, err := b.List(ctx)
	if err != nil {
		return err
	}
	v, err := choose(voices, o)
	if err != nil {
		return err
	}
	said := &sandbox.Tail{Most: maxSaid}
	err = sandbox.Job{Program: b.Program, Folder: to.Path, Read: []string{filepath.Dir(b.Program), filepath.Dir(v.model)},
		Memory: maxMemory, FileSize: maxSound, CPU: 10 * time.Minute, Stderr: said,
		Args: []string{"--vits-model=" + v.model, "--vits-tokens=" + v.tokens, "--vits-data-dir=" + b.data(), "--sid=" + strconv.Itoa(v.speaker),
			"--vits-length-scale=" + strconv.FormatFloat(1/o.Speed, 'f', 4, 64), "--num-threads=1", // two cost half as much again
			"--output-filename=" + to.Input(), "--", spoken(o.Text)},
		Talk: func(_ io.Writer, out io.Reader) error { _, err := io.Copy(io.Discard, out); return err },
	}.Run(ctx)
	info, missing := os.Stat(to.Input())
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && missing == nil && info.Size() >= maxSound:
		return apierror.Errorf(decision.Storage001, "The sound is larger than is allowed: send less text, or a higher speed.")
	case err != nil:
		return fmt.Errorf("speak: %w: %s", err, said)
	case missing != nil || info.Size() <= header:
		return apierror.Invalid([]decision.Detail{{Field: "text", Issue: "has nothing that this voice can say", Expected: "words of the voice's language"}})
	}
	return nil
}

// header is the length of a WAV file without sound, in bytes.
const header = 44

// spoken is a text as the program's argument: one line, and no option.
func spoken(text string) string { return " " + strings.Join(strings.Fields(text), " ") }
