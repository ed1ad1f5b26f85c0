// Package speechtest finds the engine for speech to text for tests, and recordings for
// it.
package speechtest

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/media/files/ffmpeg/ffmpegtest"
)

// Program is the engine that `make test` names.
func Program(t testing.TB) string {
	t.Helper()
	path := os.Getenv("SLUICE_SPEECH")
	if path == "" {
		t.Fatal("SLUICE_SPEECH is not set: run `make test`, which fetches the engine")
	}
	return path
}

// Recording is one that stands beside the engine, read aloud, and what is said in it.
type Recording struct{ Name, Text string }

// The recordings.
var (
	Beckett   = Recording{"beckett.wav", "Ever tried. Ever failed. No matter. Try again. Fail again. Fail better."}
	TwoCities = Recording{"two_cities.wav", `It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness,
		it was the epoch of belief, it was the epoch of incredulity, it was the season of light, it was the season of darkness,
		it was the spring of hope, it was the winter of despair, we had everything before us, we had nothing before us,
		we were all going direct to heaven, we were all going direct the other way. In short, the period was so far like the present period
		that some of its noisiest authorities insisted on its being received, for good or for evil, in the superlative degree of comparison only.`}
)

// Path is where the recording is.
func (r Recording) Path(t testing.TB) string {
	t.Helper()
	return filepath.Join(filepath.Dir(Program(t)), r.Name)
}

// Bytes is the recording in another form, a name of ffmpeg's with the arguments that it
// wants, such as mp3.
func (r Recording) Bytes(t testing.TB, form ...string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "recording")
	args := append([]string{"-nostdin", "-loglevel", "error", "-i", r.Path(t)}, form...)
	if said, err := exec.Command(ffmpegtest.Tool(t).Binary, append(args, out)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Samples is the recording at 16 kHz.
func (r Recording) Samples(t testing.TB) []int16 {
	t.Helper()
	b := r.Bytes(t, "-ac", "1", "-ar", "16000", "-f", "s16le")
	samples := make([]int16, len(b)/2)
	if err := binary.Read(bytes.NewReader(b), binary.LittleEndian, samples); err != nil {
		t.Fatal(err)
	}
	return samples
}

// ErrorRate is the share of words that have to be changed, added or taken away to make
// said of heard, without regard to punctuation and case.
func ErrorRate(said, heard string) float64 {
	a, b := plain(said), plain(heard)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return float64(row[len(b)]) / float64(len(a))
}

func plain(text string) []string {
	return strings.Fields(strings.Map(func(r rune) rune {
		if strings.ContainsRune(".,;:?!\"", r) {
			return ' '
		}
		return r
	}, strings.ToLower(text)))
}
