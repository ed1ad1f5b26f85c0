package vision

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/body"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/process/sandbox"
)

// pictures hands the pictures of a request to use, one after the other, with their times
// where they are a film's. It can be called again.
type pictures func(ctx context.Context, use func(at *float64, file *os.File) error) error

// Bounds of a film's pictures.
const (
	frameTime = 30 * time.Second
	maxFrame  = 32 << 20 // bytes
	lookTime  = time.Minute
	lookSpace = 1 << 30
	maxFound  = 64 << 10 // bytes of what is found
	maxCopy   = maxPixels + 64
)

// source is where the pictures of a request come from: an asset, or the body.
func (v Service) source(w http.ResponseWriter, r *http.Request, o owner.Owner, a Ask, folder ffmpeg.Folder, limit int64) (pictures, error) {
	if a.Asset != "" {
		return func(ctx context.Context, use func(*float64, *os.File) error) error {
			for _, at := range a.Times {
				if err := v.Frame(ctx, o, a.Asset, at, func(f *os.File) error { return use(&at, f) }); err != nil {
					return err
				}
			}
			return nil
		}, nil
	}
	film, err := receive(w, r, folder, limit)
	if err != nil {
		return nil, err
	}
	switch {
	case !film && len(a.Times) > 0:
		return nil, apierror.Invalid([]decision.Detail{{Field: "times", Issue: "are those of a film, and the body is a picture", Expected: "a film in MP4 or QuickTime, or no times"}})
	case !film:
		return func(_ context.Context, use func(*float64, *os.File) error) error {
			return with(folder.Input(), func(f *os.File) error { return use(nil, f) })
		}, nil
	case !v.FFmpeg.Available():
		return nil, apierror.Errorf(decision.NotImplemented, "There is no ffmpeg here: films are not looked at.")
	case len(a.Times) == 0:
		return nil, apierror.Invalid([]decision.Detail{{Field: "times", Issue: "are missing", Expected: "seconds from the film's start, with commas, such as times=1,5"}})
	}
	if err := v.accept(r.Context(), o, a, folder.Input()); err != nil {
		return nil, err
	}
	return func(ctx context.Context, use func(*float64, *os.File) error) error {
		for _, at := range a.Times {
			if err := v.frame(ctx, o, folder, at); err != nil {
				return err
			}
			if err := with(folder.Output(), func(f *os.File) error { return use(&at, f) }); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// with opens a file for use.
func with(name string, use func(*os.File) error) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("open picture: %w", err)
	}
	defer f.Close()
	return use(f)
}

// receive keeps the body as the folder's input, and reports whether it is a film.
func receive(w http.ResponseWriter, r *http.Request, folder ffmpeg.Folder, limit int64) (film bool, err error) {
	if _, err := body.Receive(w, r, folder, limit); err != nil {
		return false, err
	}
	err = with(folder.Input(), func(f *os.File) error {
		film, err = isFilm(f)
		return err
	})
	return film, err
}

// isFilm looks at the beginning of a file: a film, else a picture, else STORAGE_002.
func isFilm(f io.ReaderAt) (bool, error) {
	head := make([]byte, 12)
	n, _ := f.ReadAt(head, 0) // a picture is longer
	switch {
	case n == 12 && isPicture(head):
		return false, nil
	case n == 12 && (string(head[4:8]) == "ftyp" || string(head[4:8]) == "moov" || string(head[4:8]) == "wide" || string(head[4:8]) == "mdat"): // ISO/IEC 14496-12, QuickTime
		return true, nil
	}
	return false, notAccepted(nil)
}

// isPicture looks at the first twelve bytes of a file.
func isPicture(head []byte) bool {
	s := string(head)
	return strings.HasPrefix(s, "\xff\xd8\xff") || strings.HasPrefix(s, "\x89PNG\r\n\x1a\n") || strings.HasPrefix(s, "GIF8") || strings.HasPrefix(s, "RIFF") && s[8:] == "WEBP"
}

func notAccepted(cause error) error {
	return &apierror.Error{Code: decision.Storage002, Message: "The file is not accepted: a picture in JPEG, PNG, GIF or WebP is expected, or a film in MP4 or QuickTime.", Cause: cause}
}

// accept looks into a film.
func (v Service) accept(ctx context.Context, o owner.Owner, a Ask, name string) error {
	return with(name, func(f *os.File) error {
		size, err := f.Seek(0, io.SeekEnd)
		if err != nil {
			return fmt.Errorf("look at film: %w", err)
		}
		info, err := v.Probe.Look(ctx, o.ID, f, size)
		if _, ours := errors.AsType[*apierror.Error](err); ours || ctx.Err() != nil {
			return err
		}
		if err != nil || info.Height == 0 {
			return notAccepted(err)
		}
		for _, at := range a.Times {
			if info.Duration > 0 && at >= info.Duration.Seconds() {
				return apierror.Invalid([]decision.Detail{{Field: "times", Issue: "has one that lies beyond the end", Expected: fmt.Sprintf("less than %.3f", info.Duration.Seconds())}})
			}
		}
		return nil
	})
}

// frame makes the picture at a place of the film in folder its output.
func (v Service) frame(ctx context.Context, o owner.Owner, folder ffmpeg.Folder, at float64) error {
	leave, err := ffmpeg.Enter(ctx, v.Converting, o.ID)
	if err != nil {
		return err
	}
	defer leave()
	return v.FFmpeg.Run(ctx, folder, ffmpeg.Still(at, 0, "png"), maxFrame, frameTime)
}

// confined has Child look at a picture, and keeps the copy that it makes under a name.
func confined(ctx context.Context, picture *os.File, t task, name string) (f found, err error) {
	info, err := picture.Stat()
	if err != nil {
		return f, fmt.Errorf("look at picture: %w", err)
	}
	t.Size = info.Size()
	within, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	err = sandbox.Job{Function: Function, Memory: lookSpace, CPU: lookTime, Talk: func(in io.Writer, out io.Reader) error {
		sent := make(chan error, 1)
		go func() { sent <- send(in, picture, t) }()
		err := receiveFound(out, &f, name)
		return errors.Join(err, <-sent)
	}}.Run(within)
	switch {
	case ctx.Err() != nil:
		return f, ctx.Err()
	case sandbox.Failed(err):
		return f, &apierror.Error{Code: decision.Unavailable, RetryAfter: 5, Cause: err}
	case f.Fault == faultPixels:
		return f, apierror.Errorf(decision.Storage001, "The picture has more than %d pixels, or more than %d a side.", maxPixels, maxSide)
	case err != nil || f.Fault != "":
		return f, notAccepted(err)
	}
	return f, nil
}

// send gives the task and the picture to the confined process. One that does not want
// the rest has said why.
func send(in io.Writer, picture io.ReaderAt, t task) error {
	if err := json.NewEncoder(in).Encode(t); err != nil {
		return err
	}
	_, err := io.Copy(in, io.NewSectionReader(picture, 0, t.Size))
	return err
}

// receiveFound reads what the confined process has found, maxFound bytes at most, and keeps
// its copy. A process that a picture has taken over can say anything, and no more.
func receiveFound(out io.Reader, f *found, name string) error {
	in := bufio.NewReaderSize(out, maxFound)
	line, err := in.ReadSlice('\n')
	if err != nil {
		return fmt.Errorf("nothing was found: %w", err)
	}
	if err := json.Unmarshal(line, f); err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if n, err := io.Copy(file, io.LimitReader(in, maxCopy)); err != nil || n == maxCopy {
		return errors.Join(err, errors.New("the copy is too large"))
	}
	return file.Close()
}
