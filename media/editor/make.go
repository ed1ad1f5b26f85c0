package editor

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"sluice.dev/sluice/media/files/ffmpeg"
)

// make makes the video of p in a folder that has its sources: the pictures piece by piece,
// then the sound, and both as one film of at most most bytes. It ends within limit. report
// hears how much of the pictures is there.
func (p plan) make(ctx context.Context, tool ffmpeg.Tool, in ffmpeg.Folder, most int64, limit time.Duration, report func(time.Duration)) error {
	end := time.Now().Add(limit)
	for _, w := range p.pieces() {
		small := p.in(w)
		if err := small.writeLayers(in); err != nil {
			return err
		}
		before := time.Duration(p.seconds(w.from) * float64(time.Second))
		recipe := small.moving().Reported(func(made time.Duration) { report(before + made) })
		if err := tool.Run(ctx, in, recipe, most, time.Until(end)); err != nil {
			return err
		}
		if err := add(in.File(picturesName), in.Output()); err != nil {
			return err
		}
	}
	return tool.Run(ctx, in, p.joined(), most, time.Until(end))
}

// add puts what a file has behind what another has, and removes it.
func add(to, from string) error {
	src, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("open piece: %w", err)
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("join pieces: %w", err)
	}
	if _, err := io.Copy(dst, src); err != nil {
		dst.Close()
		return fmt.Errorf("join pieces: %w", err)
	}
	if err := dst.Close(); err != nil {
		return fmt.Errorf("join pieces: %w", err)
	}
	return os.Remove(from)
}

// writeLayers puts the pictures of the overlays into a folder, in place of those of the
// piece before.
func (p plan) writeLayers(to ffmpeg.Folder) error {
	for i, l := range p.layers {
		picture, err := l.made()
		if err == nil {
			err = os.WriteFile(to.File(layerName(i)), picture, 0o600)
		}
		if err != nil {
			return fmt.Errorf("write overlay: %w", err)
		}
	}
	return nil
}
