package vision

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // the formats that are taken
	"image/jpeg"
	_ "image/png"
	"io"
	"os"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp"
)

// Function is the name under which Child is given to sandbox.Main.
const Function = "mediavision"

// Bounds of a picture.
const (
	maxPixels = 25_000_000
	maxSide   = 20_000
	maxRead   = 6_000_000 // pixels that text is looked for in; more are made fewer
	maxModel  = 1536      // pixels a side that models are shown
)

// Kinds of copies that a task asks for.
const (
	copyNone = ""
	copyGray = "gray" // PGM, to read text in
	copyJPEG = "jpeg" // what models are shown
)

// task is what the confined process is to do with the bytes that follow it.
type task struct {
	Size   int64  `json:"size"` // of the picture, in bytes
	Faces  bool   `json:"faces"`
	Colors bool   `json:"colors"`
	Copy   string `json:"copy"`
}

// found is what it answers, before the copy.
type found struct {
	Fault string `json:"fault,omitempty"` // faultFormat or faultPixels; empty: none
	Picture
	Scale int `json:"scale"` // pixels of the picture for one of the copy
}

// Faults of a picture.
const (
	faultFormat = "format"
	faultPixels = "pixels"
)

// Child looks at one picture in a confined process: a task and the picture come on
// standard input, found and the copy go to standard output. It holds eight bytes for
// each pixel, maxPixels at most, and what the decoder does; its time is linear in the
// pixels.
func Child() int {
	in := bufio.NewReaderSize(os.Stdin, 64<<10)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return 1
	}
	var t task
	if json.Unmarshal(line, &t) != nil {
		return 1
	}
	f, picture := look(io.LimitReader(in, t.Size), t)
	out := bufio.NewWriterSize(os.Stdout, 64<<10)
	if json.NewEncoder(out).Encode(f) != nil || picture != nil && write(out, picture, t.Copy) != nil || out.Flush() != nil {
		return 1
	}
	return 0
}

// look decodes a picture and says what is to be seen in it without an engine; the copy is
// nil where none is asked for or there is a fault.
func look(r io.Reader, t task) (f found, shown image.Image) {
	raw, err := io.ReadAll(r)
	if err != nil {
		return found{Fault: faultFormat}, nil
	}
	c, format, err := image.DecodeConfig(bytes.NewReader(raw))
	if err != nil {
		return found{Fault: faultFormat}, nil
	}
	if c.Width <= 0 || c.Height <= 0 || c.Width > maxSide || c.Height > maxSide || c.Width*c.Height > maxPixels {
		return found{Fault: faultPixels}, nil
	}
	decoded, _, err := image.Decode(bytes.NewReader(raw))
	if err != nil || decoded.Bounds().Dx()*decoded.Bounds().Dy() > maxPixels {
		return found{Fault: faultFormat}, nil
	}
	widen(decoded, format)
	turn := 1
	if format == "jpeg" {
		turn = orientation(raw)
	}
	picture := upright(flat(decoded), turn)
	f.Width, f.Height, f.Format, f.Scale = picture.Rect.Dx(), picture.Rect.Dy(), format, 1
	gray := luma(picture)
	f.Measures = measure(gray)
	if t.Colors {
		f.Colors = colors(picture)
	}
	if t.Faces {
		f.Faces = faces(gray)
	}
	switch t.Copy {
	case copyGray:
		for gray.Rect.Dx()*gray.Rect.Dy() > maxRead {
			gray, f.Scale = half(gray), 2*f.Scale
		}
		shown = gray
	case copyJPEG:
		shown = fitted(picture, maxModel)
	}
	return f, shown
}

// widen gives a lossy WebP its whole range: its brightness is from 16 to 235 and its
// colours from 16 to 240 (RFC 9649), and the decoder leaves them so.
func widen(p image.Image, format string) {
	planes, ok := p.(*image.YCbCr)
	if translucent, is := p.(*image.NYCbCrA); is {
		planes, ok = &translucent.YCbCr, true
	}
	if !ok || format != "webp" {
		return
	}
	for i, v := range planes.Y {
		planes.Y[i] = clamp((int(v) - 16) * 255 / 219)
	}
	for _, plane := range [][]uint8{planes.Cb, planes.Cr} {
		for i, v := range plane {
			plane[i] = clamp((int(v)-128)*255/224 + 128)
		}
	}
}

func clamp(v int) uint8 { return uint8(min(max(v, 0), 255)) }

// flat is a picture on white, with its corner at 0, 0.
func flat(src image.Image) *image.RGBA {
	b := src.Bounds()
	dst := image.NewRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
	draw.Draw(dst, dst.Rect, image.White, image.Point{}, draw.Src)
	draw.Draw(dst, dst.Rect, src, b.Min, draw.Over)
	return dst
}

// fitted is a picture of at most so many pixels a side.
func fitted(src *image.RGBA, side int) image.Image {
	w, h := src.Rect.Dx(), src.Rect.Dy()
	if w <= side && h <= side {
		return src
	}
	if w > h {
		w, h = side, max(1, h*side/w)
	} else {
		w, h = max(1, w*side/h), side
	}
	dst := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.ApproxBiLinear.Scale(dst, dst.Rect, src, src.Rect, draw.Src, nil)
	return dst
}

// write writes the copy.
func write(w io.Writer, picture image.Image, kind string) error {
	if kind == copyJPEG {
		return jpeg.Encode(w, picture, &jpeg.Options{Quality: 85})
	}
	gray, ok := picture.(*image.Gray)
	if !ok {
		return errors.New("the copy is not gray")
	}
	if _, err := fmt.Fprintf(w, "P5\n%d %d\n255\n", gray.Rect.Dx(), gray.Rect.Dy()); err != nil {
		return err
	}
	_, err := w.Write(gray.Pix)
	return err
}
