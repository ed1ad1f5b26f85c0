// Package transcribe turns speech into text with times: of a body while its sender
// waits, and of an asset by a job, for captions. What does the work is an engine of
// package engines: the built-in one, or an API like OpenAI's.
package transcribe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/assets"
	"sluice.dev/sluice/media/engines"
	"sluice.dev/sluice/media/engines/remote"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/media/plans"
	"sluice.dev/sluice/media/transcribe/transcript"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/limits/fairshare"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Engine turns speech into text.
type Engine interface {
	engines.Engine
	// Transcribe writes what was said in samples of transcript.Rate, two minutes of
	// them. language is empty where the caller names none.
	Transcribe(ctx context.Context, samples []int16, language string) (transcript.Transcript, error)
}

// Default bounds transcription where the document says nothing.
var Default = engines.Setting{Timeout: 5 * time.Minute, MaxBytes: 256 << 20}

// Remote makes an engine of an address.
func Remote(a *remote.API) Engine { return address{a} }

// Service is what can be transcribed. Every field is required.
type Service struct {
	DB         postgres.DB
	Events     events.Emitter
	Assets     assets.Service
	Product    *engines.Product[Engine]
	FFmpeg     ffmpeg.Tool     // its zero value: everything answers 501
	Bodies     *fairshare.Pool // of the bodies that are here or on their way, by owner
	Converting *fairshare.Pool // of the runs of ffmpeg, by owner
	Working    *fairshare.Pool // of the jobs, by owner: of Places
	Plans      plans.Source
	Jobs       *river.Client[pgx.Tx]
	QueueLimit int // of transcripts that wait
	OwnerLimit int // and of one owner's
	Now        func() time.Time
}

// Bounds of a sound.
const (
	maxWaiting = 10 * time.Minute // while its sender waits
	maxJob     = 4 * time.Hour
	pieceTime  = 2 * time.Minute // of what an engine is given at once, and an account's turn
	quietTime  = time.Minute / 2 // at the end of a piece, in which it is cut where it is quiet
	soundTime  = 15 * time.Minute
)

// Available is an error when there is nothing to transcribe with: not_implemented.
func (v Service) Available(ctx context.Context) error {
	if !v.Product.Available(ctx) {
		return v.Product.Missing()
	}
	if !v.FFmpeg.Available() {
		return apierror.Errorf(decision.NotImplemented, "There is no ffmpeg here, which takes the sound out of files.")
	}
	return nil
}

// Speaks is an error where the engine in force does not know a language, or there is none.
// What an engine at an address knows, only it can say.
func (v Service) Speaks(ctx context.Context, language string) error {
	if err := v.Available(ctx); err != nil {
		return err
	}
	e, ok := v.Product.First(ctx)
	if !ok {
		return v.Product.Missing()
	}
	if e, ok := e.(interface{ Knows(string) error }); ok {
		return e.Knows(language)
	}
	return nil
}

// transcribe writes what is said in the file that is the input of folder, which may be
// longest long. progress is told the share that is done, 0 to 1. It takes time in
// proportion to the sound, and memory for one piece of it.
func (v Service) transcribe(ctx context.Context, account string, folder ffmpeg.Folder, language string, longest time.Duration, progress func(float64)) (transcript.Transcript, error) {
	if err := v.listen(ctx, account, folder, longest); err != nil {
		return transcript.Transcript{}, err
	}
	f, err := os.Open(folder.Output())
	if err != nil {
		return transcript.Transcript{}, fmt.Errorf("open sound: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return transcript.Transcript{}, fmt.Errorf("look at sound: %w", err)
	}
	all := info.Size() / 2
	if all > samplesOf(longest) {
		return transcript.Transcript{}, apierror.Errorf(decision.Storage001, "The sound is longer than %s.", longest)
	}
	out := transcript.Transcript{Segments: []transcript.Segment{}, Words: []transcript.Word{}}
	for at := int64(0); at < all; {
		piece, err := read(f, at, min(all-at, samplesOf(pieceTime)))
		if err != nil {
			return out, err
		}
		if at+int64(len(piece)) < all {
			piece = piece[:quietest(piece)]
		}
		part, err := v.piece(ctx, account, piece, language)
		if err != nil {
			return out, err
		}
		out.Add(part, float64(at)/transcript.Rate)
		at += int64(len(piece))
		progress(float64(at) / float64(all))
	}
	return out, nil
}

// listen takes the sound out of the file.
func (v Service) listen(ctx context.Context, account string, folder ffmpeg.Folder, longest time.Duration) error {
	leave, err := ffmpeg.Enter(ctx, v.Converting, account)
	if err != nil {
		return err
	}
	defer leave()
	err = v.FFmpeg.Run(ctx, folder, ffmpeg.Sound(longest.Seconds()+1), 0, soundTime)
	if errors.Is(err, ffmpeg.ErrFile) {
		return &apierror.Error{Code: decision.Storage002, Message: "The file is not accepted: no sound can be read from it.", Cause: err}
	}
	return err
}

// piece has an engine transcribe one piece.
func (v Service) piece(ctx context.Context, account string, samples []int16, language string) (part transcript.Transcript, err error) {
	err = v.Product.Do(ctx, account, func(ctx context.Context, e Engine, _ engines.Setting) (err error) {
		part, err = e.Transcribe(ctx, samples, language)
		return err
	})
	return part, err
}

func samplesOf(d time.Duration) int64 { return int64(d.Seconds() * transcript.Rate) }

// read reads n samples.
func read(f io.ReaderAt, at, n int64) ([]int16, error) {
	b := make([]byte, 2*n)
	if _, err := f.ReadAt(b, 2*at); err != nil {
		return nil, fmt.Errorf("read sound: %w", err)
	}
	samples := make([]int16, n)
	for i := range samples {
		samples[i] = int16(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return samples, nil
}

// quietest is the place in the last quietTime of samples around which 300 ms are the
// quietest, so that no word is cut.
func quietest(samples []int16) int {
	const step = transcript.Rate / 50
	const width = 15 // steps
	begin := max(0, len(samples)-int(samplesOf(quietTime)))
	loud := make([]int, 0, (len(samples)-begin)/step)
	for at := begin; at+step <= len(samples); at += step {
		sum := 0
		for _, s := range samples[at : at+step] {
			sum += max(int(s), -int(s))
		}
		loud = append(loud, sum)
	}
	best, place, sum := -1, len(samples), 0
	for i, l := range loud {
		sum += l
		if i >= width {
			sum -= loud[i-width]
		}
		if i >= width-1 && (best < 0 || sum <= best) {
			best, place = sum, begin+(i-width/2)*step
		}
	}
	return place
}

// newFolder is for one file.
func (v Service) newFolder() (ffmpeg.Folder, func(), error) {
	folder, err := v.FFmpeg.NewFolder()
	return folder, func() { _ = folder.Close() }, err // what is left of it is the machine's to clean
}

// client errors that another attempt would not mend.
func lasting(err error) bool {
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok {
		return false
	}
	switch e.Code {
	case decision.Storage001, decision.Storage002, decision.InvalidRequest, decision.NotImplemented, decision.NotFound:
		return true
	}
	return false
}

// contentTypes are those of the forms of a transcript.
var contentTypes = map[string]string{"json": "application/json", "verbose_json": "application/json", "srt": "application/x-subrip; charset=utf-8", "vtt": "text/vtt; charset=utf-8", "text": "text/plain; charset=utf-8"}

// write answers with t in a form.
func write(w http.ResponseWriter, t transcript.Transcript, form string) error {
	text := ""
	switch form {
	case "srt":
		text = t.SRT()
	case "vtt":
		text = t.VTT()
	case "text":
		text = t.Plain()
	default:
		return writeJSON(w, t)
	}
	w.Header().Set("Content-Type", contentTypes[form])
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, err := io.WriteString(w, text)
	return err
}
