package assets

import (
	"context"
	"io"
	"os"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/files"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/media/files/fragments"
	"sluice.dev/sluice/platform/apierror"
)

// maxMoment bounds what is read for one picture of a film whose tracks are known, in
// bytes: ten seconds of 50 Mbit/s.
const maxMoment = 64 << 20

// picture makes the picture of a at seconds, of the given width and format, and hands it to
// use. It reads the seconds around it, maxMoment at most. Where the film's codec is not
// known, or so few seconds hold more, the film is copied, once for all its pictures.
func (v Service) picture(ctx context.Context, a Asset, at float64, width int, format string, use func(*os.File) error) error {
	if err := v.Films.Check(a.FileSize); err != nil {
		return err
	}
	film, m, err := v.moment(ctx, a, at)
	if err != nil {
		return err
	}
	if film == nil {
		whole := func(ctx context.Context, src *files.Reader, to ffmpeg.Folder) error {
			return v.Films.Put(ctx, a.FileID, src.Size(), to, func(w io.Writer) error { _, err := io.Copy(w, src); return err })
		}
		return v.convert(ctx, a, whole, ffmpeg.Still(at, width, format), maxStillSize, stillTimeout, use)
	}
	part := func(_ context.Context, src *files.Reader, to ffmpeg.Folder) error {
		return ffmpeg.Keep(to.Input(), film.Film(m, src))
	}
	return v.convert(ctx, a, part, ffmpeg.Still(m.At, width, format).OnClock(), maxStillSize, stillTimeout, use)
}

// moment finds what shows the picture at seconds of a; film is nil where the whole film is
// needed.
func (v Service) moment(ctx context.Context, a Asset, at float64) (film *fragments.Cut, m fragments.Moment, err error) {
	f, _, err := v.fragments(ctx, a)
	switch apierror.Code(err) {
	case decision.Storage002, decision.NotFound, decision.NotImplemented:
		return nil, m, nil // no track that can be cut
	}
	if err != nil {
		return nil, m, err
	}
	for _, t := range f.Tracks {
		if t.Kind == fragments.Video {
			if m, ok := t.Moment(at); ok && m.N <= maxMoment {
				return &t, m, nil
			}
			break
		}
	}
	return nil, m, nil
}
