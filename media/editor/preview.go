package editor

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/files"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/platform/http/httpapi"
)

// Bounds of a preview, whose caller waits for it.
const (
	maxPreview     = 16 << 20 // bytes
	previewTimeout = 30 * time.Second
)

// preview answers POST /v1/editor/preview?time=: the picture of a timeline at a time in
// seconds, as JPEG, without a render. The films of an account take one conversion at a
// time, and each is copied once for all its previews.
func (v Service) preview(a httpapi.Adapter) http.HandlerFunc {
	return a.Handle(func(w http.ResponseWriter, r *http.Request) error {
		o, err := owner.From(r.Context())
		if err != nil {
			return err
		}
		var in Input
		if err := httpapi.Decode(w, r, 0, &in); err != nil {
			return err
		}
		p, err := v.plan(r.Context(), o, in)
		if err != nil {
			return err
		}
		frame, err := p.frame(r.URL.Query().Get("time"))
		if err != nil {
			return err
		}
		leave, err := ffmpeg.Enter(r.Context(), v.Assets.Converting, o.ID)
		if err != nil {
			return err
		}
		defer leave()
		return v.show(r.Context(), w, p, frame)
	})
}

// frame reads a time of the timeline; empty: its beginning.
func (p plan) frame(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	at, err := strconv.ParseFloat(text, 64)
	if err != nil || !(at >= 0 && at < p.seconds(p.frames)) {
		var f form.Form
		f.Fail("time", "lies outside the timeline", fmt.Sprintf("seconds from 0 to less than %.3f", p.seconds(p.frames)))
		return 0, f.Err()
	}
	return min(int(at*float64(p.rate.Num)/float64(p.rate.Den)), p.frames-1), nil
}

// show makes the picture and answers with it.
func (v Service) show(ctx context.Context, w http.ResponseWriter, p plan, frame int) error {
	folder, err := v.Assets.FFmpeg.NewFolder()
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }() // what is left of it is the machine's to clean
	small, which := p.at(frame)
	for _, n := range small.used() {
		s := p.sources[n]
		src, err := files.Open(ctx, v.Assets.DB, s.FileID)
		if err != nil {
			return err
		}
		if err := v.Assets.Films.Put(ctx, s.FileID, src.Size(), folder, func(to io.Writer) error { _, err := io.Copy(to, src); return err }); err != nil {
			return err
		}
		if err := os.Rename(folder.Input(), folder.File(sourceName(n))); err != nil {
			return fmt.Errorf("place film: %w", err)
		}
	}
	if err := small.writeLayers(folder); err != nil {
		return err
	}
	if err := v.Assets.FFmpeg.Run(ctx, folder, small.picture(which), maxPreview, previewTimeout); err != nil {
		return err
	}
	out, err := os.Open(folder.Output())
	if err != nil {
		return fmt.Errorf("open result: %w", err)
	}
	defer out.Close()
	h := w.Header()
	h.Set("Content-Type", "image/jpeg")
	h.Set("Cache-Control", "no-store")
	_, _ = io.Copy(w, out) // to a caller who may have gone
	return nil
}
