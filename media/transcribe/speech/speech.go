// Package speech is the built-in engine of transcription: the program of sherpa-onnx
// with the model Moonshine tiny-en, which runs in the sandbox of ffmpeg. It takes the
// sound apart at pauses (Silero VAD) and writes what was said between them.
package speech

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/transcribe/transcript"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/process/sandbox"
)

// Version names the engine and its model.
const Version = "moonshine tiny-en, sherpa-onnx 2.0.1"

// Files are those that stand beside the program.
var Files = []string{"libonnxruntime.so", "silero_vad.onnx", "encoder_model.ort", "decoder_model_merged.ort", "tokens.txt"}

// Bounds of one piece of work.
const (
	maxMemory = 1 << 30
	maxLine   = 64 << 10
	maxLines  = 1 << 20
	maxSaid   = 2 << 10 // bytes of its complaints that are kept, for the log
	threads   = 2
)

// Program is the engine.
type Program struct {
	Path string // of the program, beside which Files stand
	Dir  string // for files for the time of a piece of work; empty: os.TempDir

	once  sync.Once
	tried chan struct{} // closed when err is known
	err   error
}

// tryTime bounds the run that shows whether the program can run at all.
const tryTime = 30 * time.Second

// try begins, once, to find out whether the program can run on this machine.
func (p *Program) try() {
	p.once.Do(func() {
		p.tried = make(chan struct{})
		go func() {
			defer close(p.tried)
			p.err = p.run()
		}()
	})
}

// run looks for the files and has the program show its help, which it does when its
// libraries are there.
func (p *Program) run() error {
	var missing error
	for _, name := range Files {
		_, err := os.Stat(p.beside(name))
		missing = errors.Join(missing, err)
	}
	path, err := filepath.Abs(p.Path)
	if missing != nil || err != nil {
		return errors.Join(missing, err)
	}
	folder, err := os.MkdirTemp(p.Dir, "sluice-speech-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }() // what is left of it is the machine's to clean
	ctx, cancel := context.WithTimeout(context.Background(), tryTime)
	defer cancel()
	said := &sandbox.Tail{Most: maxSaid}
	if err := (sandbox.Job{Program: path, Args: []string{"--help"}, Folder: folder, Read: []string{filepath.Dir(path)}, Memory: maxMemory, CPU: tryTime, Stderr: said}).Run(ctx); err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}

// Broken reports whether the program was found not to run here. What is not known yet
// is not broken.
func (p *Program) Broken() bool {
	p.try()
	select {
	case <-p.tried:
		return p.err != nil
	default:
		return false
	}
}

// Check says whether the program runs, as was found once. Until that is known it is
// well.
func (p *Program) Check(ctx context.Context) (string, error) {
	p.try()
	select {
	case <-p.tried:
		return Version, p.err
	case <-ctx.Done():
		return Version, nil
	}
}

func (p *Program) beside(name string) string { return filepath.Join(filepath.Dir(p.Path), name) }

// Knows is an error for a language that the model does not know; empty: it is not named.
func (p *Program) Knows(language string) error {
	if language != "" && language != "en" && !strings.HasPrefix(language, "en-") {
		return &apierror.Error{Code: decision.InvalidRequest, Message: "The built-in engine knows no language but English.",
			Details: []decision.Detail{{Field: "language", Issue: "is not known to the built-in engine", Expected: "en; an engine at an address may know more"}}}
	}
	return nil
}

// Transcribe writes what was said in samples of transcript.Rate, in English. It takes
// about a fifteenth of the sound's time on two processors, and memory of 1 GiB at most.
func (p *Program) Transcribe(ctx context.Context, samples []int16, language string) (transcript.Transcript, error) {
	if err := p.Knows(language); err != nil {
		return transcript.Transcript{}, err
	}
	path, err := filepath.Abs(p.Path)
	if err != nil {
		return transcript.Transcript{}, fmt.Errorf("find the program: %w", err)
	}
	folder, err := os.MkdirTemp(p.Dir, "sluice-speech-")
	if err != nil {
		return transcript.Transcript{}, fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }() // what is left of it is the machine's to clean
	if err := writeWAV(filepath.Join(folder, "sound.wav"), samples); err != nil {
		return transcript.Transcript{}, err
	}
	length := time.Duration(len(samples)) * time.Second / transcript.Rate
	home := filepath.Dir(path)
	in := func(name string) string { return filepath.Join(home, name) }
	out := transcript.Transcript{Language: "en", Duration: length.Seconds(), WordTimes: transcript.Estimated, Engine: Version}
	said := &sandbox.Tail{Most: maxSaid}
	job := sandbox.Job{Program: path, Folder: folder, Read: []string{home}, Memory: maxMemory, FileSize: 1 << 20, Stderr: said,
		CPU: (30*time.Second + 2*length) * time.Duration(runtime.NumCPU()),
		Args: []string{"--print-args=false", "--num-threads=" + strconv.Itoa(threads), "--silero-vad-model=" + in("silero_vad.onnx"), "--tokens=" + in("tokens.txt"),
			"--moonshine-encoder=" + in("encoder_model.ort"), "--moonshine-merged-decoder=" + in("decoder_model_merged.ort"), "sound.wav"},
		Talk: func(_ io.Writer, lines io.Reader) error { return Read(lines, samples, &out) }}
	if err := job.Run(ctx); err != nil {
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		return out, fmt.Errorf("recognize speech: %w: %s", err, said)
	}
	return out, nil
}

// Read adds to t what the program's lines say of samples, such as "1.182 -- 8.300: It was the best of times."
// The program has seen strangers' sounds, so that any line may be wrong. It takes time
// linear in lines and samples, and memory of the text; a line of 64 KiB is an error, and
// so are lines of a mebibyte together.
func Read(lines io.Reader, samples []int16, t *transcript.Transcript) error {
	limited := &io.LimitedReader{R: lines, N: maxLines}
	scan := bufio.NewScanner(limited)
	scan.Buffer(nil, maxLine)
	for scan.Scan() {
		start, end, text, ok := parse(scan.Text())
		if !ok || !(start >= 0 && start < end && end <= t.Duration+1) { // not a number is none of these
			continue
		}
		t.Segments = append(t.Segments, transcript.Segment{ID: len(t.Segments), Start: start, End: end, Text: text})
	}
	if limited.N == 0 {
		return errTooMuch
	}
	t.EstimateWords(samples)
	return scan.Err()
}

// errTooMuch says that a program writes more than anybody can have said.
var errTooMuch = errors.New("the program writes without end")

// parse reads one line; ok is false for one that is no piece of speech.
func parse(line string) (start, end float64, text string, ok bool) {
	times, text, found := strings.Cut(line, ": ")
	from, to, both := strings.Cut(times, " -- ")
	if !found || !both || strings.TrimSpace(text) == "" {
		return 0, 0, "", false
	}
	start, err1 := strconv.ParseFloat(from, 64)
	end, err2 := strconv.ParseFloat(to, 64)
	return start, end, strings.TrimSpace(text), err1 == nil && err2 == nil
}

// writeWAV writes samples as a file of one channel.
func writeWAV(name string, samples []int16) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fs.FileMode(0o600))
	if err != nil {
		return fmt.Errorf("keep sound: %w", err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	if err := errors.Join(WAV(w, samples), w.Flush(), f.Close()); err != nil {
		return fmt.Errorf("keep sound: %w", err)
	}
	return nil
}

// WAV writes samples of transcript.Rate in the form of a WAV file (RIFF, PCM, 16 bits,
// one channel).
func WAV(w io.Writer, samples []int16) error {
	size := uint32(2 * len(samples))
	head := struct {
		RIFF                    [4]byte
		Size                    uint32
		WAVE, Fmt               [4]byte
		FmtSize                 uint32
		PCM, Channels           uint16
		Rate, BytesPerSecond    uint32
		BytesPerSample, BitsPer uint16
		Data                    [4]byte
		DataSize                uint32
	}{[4]byte([]byte("RIFF")), 36 + size, [4]byte([]byte("WAVE")), [4]byte([]byte("fmt ")), 16, 1, 1, transcript.Rate, 2 * transcript.Rate, 2, 16, [4]byte([]byte("data")), size}
	if err := binary.Write(w, binary.LittleEndian, head); err != nil {
		return err
	}
	return binary.Write(w, binary.LittleEndian, samples)
}
