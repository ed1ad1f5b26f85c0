package editor

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	_ "image/jpeg" // whose heads are read
	"image/png"
	"math"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gomedium"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// overlay places a text or a picture.
func (c *checker) overlay(place string, in Overlay) {
	p, before := c.plan, c.bad
	kind := c.choice(place+".type", in.Type, "text", "image")
	if !in.Type.set {
		c.fail(place+".type", "is missing", "one of text, image")
	}
	out := layer{opacity: c.number(place+".opacity", in.Opacity, 1, 0, 1)}
	x, y := c.number(place+".x", in.X, 0.5, 0, 1), c.number(place+".y", in.Y, 0.5, 0, 1)
	whole := p.seconds(p.frames)
	from := c.number(place+".start", in.Start, 0, 0, maxLength)
	to := c.number(place+".end", in.End, whole, 0, maxLength)
	out.from, out.to = toFrames(p.rate, from), min(toFrames(p.rate, to), p.frames)
	switch {
	case p.frames > 0 && from >= whole:
		c.fail(place+".start", "lies beyond the end", fmt.Sprintf("less than %.3f", whole))
	case in.End.set && to <= from:
		c.fail(place+".end", "is not after start", fmt.Sprintf("more than %g", from))
	case p.frames > 0 && out.to <= out.from:
		c.fail(place+".end", "leaves less than one picture", fmt.Sprintf("%.3f or more", from+p.seconds(1)))
	}
	if kind == "image" {
		c.image(place, in, &out)
	} else {
		c.text(place, in, &out)
	}
	if c.bad > before {
		return
	}
	out.x, out.y = int(math.Round(float64(p.width-out.w)*x)), int(math.Round(float64(p.height-out.h)*y))
	c.plan.layers = append(c.plan.layers, out)
}

// none says that a field does not belong to an overlay of this type.
func (c *checker) none(place, kind string, fields map[string]bool) {
	for name, set := range fields {
		if set {
			c.fail(place+"."+name, "does not belong to "+kind, "")
		}
	}
}

// image reads a picture: its head only, here. The rest is ffmpeg's, in its sandbox.
func (c *checker) image(place string, in Overlay, out *layer) {
	c.none(place, "an image", map[string]bool{"text": in.Text.set, "size": in.Size.set, "color": in.Color.set, "background": in.Background.set})
	const wanted = "base64 of a PNG or JPEG of at most 512 KiB and 4096 by 4096 pixels"
	share := c.number(place+".width", in.Width, 0, 0.001, 4)
	if !in.Image.set || in.Image.bad || in.Image.v == "" {
		c.fail(place+".image", "is missing", wanted)
		return
	}
	if base64.StdEncoding.DecodedLen(len(in.Image.v)) > maxPicture+2 {
		c.fail(place+".image", "is too large", wanted)
		return
	}
	raw, err := base64.StdEncoding.DecodeString(in.Image.v)
	if err != nil {
		c.fail(place+".image", "is not base64", wanted)
		return
	}
	head, kind, err := image.DecodeConfig(bytes.NewReader(raw))
	if err != nil || kind != "png" && kind != "jpeg" {
		c.fail(place+".image", "is no picture", wanted)
		return
	}
	if head.Width < 1 || head.Height < 1 || head.Width > maxSide || head.Height > maxSide {
		c.fail(place+".image", fmt.Sprintf("has %d by %d pixels", head.Width, head.Height), wanted)
		return
	}
	width := float64(head.Width)
	if share > 0 {
		width = share * float64(c.plan.width)
	}
	c.plan.images += int64(len(raw))
	out.made, out.kind = func() ([]byte, error) { return raw, nil }, kind
	out.w = max(int(math.Round(width)), 1)
	out.h = max(int(math.Round(width*float64(head.Height)/float64(head.Width))), 1)
	if out.w > maxSide || out.h > maxSide {
		c.fail(place+".width", "makes the picture too large", fmt.Sprintf("at most %d by %d pixels", maxSide, maxSide))
	}
}

// text measures a text. It is drawn when a video or a preview is made of it, which few
// are at once: a picture of it may have 64 MiB.
func (c *checker) text(place string, in Overlay, out *layer) {
	c.none(place, "a text", map[string]bool{"image": in.Image.set, "width": in.Width.set})
	const wanted = "1 to 200 characters in 1 to 10 lines"
	size := c.number(place+".size", in.Size, 0.06, 0.01, 0.5)
	fill := c.color(place+".color", in.Color, color.NRGBA{255, 255, 255, 255})
	ground := c.color(place+".background", in.Background, color.NRGBA{})
	lines := strings.Split(in.Text.v, "\n")
	switch {
	case !in.Text.set || in.Text.bad || strings.TrimSpace(in.Text.v) == "":
		c.fail(place+".text", "is missing or empty", wanted)
		return
	case len([]rune(in.Text.v)) > maxText || len(lines) > 10:
		c.fail(place+".text", "is too long", wanted)
		return
	}
	if strange := unknown(lines); strange != "" {
		c.fail(place+".text", "has characters that the font lacks: "+strange, "Latin, Greek and Cyrillic letters, digits and common signs")
		return
	}
	t, err := measure(lines, size*float64(c.plan.height), c.plan.width)
	if err != nil {
		c.fail(place+".size", err.Error(), "smaller, or a shorter text")
		return
	}
	out.kind, out.w, out.h = "png", t.w, t.h
	out.made = sync.OnceValues(func() ([]byte, error) { return t.draw(fill, ground) })
}

// color reads #rrggbb.
func (c *checker) color(field string, f text, def color.NRGBA) color.NRGBA {
	if !f.set {
		return def
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(f.v, "#"), 16, 32)
	if f.bad || err != nil || len(f.v) != 7 || f.v[0] != '#' {
		c.fail(field, "is not a colour", "#rrggbb")
		return def
	}
	return color.NRGBA{uint8(n >> 16), uint8(n >> 8), uint8(n), 255}
}

// typeface is Go Medium, a font under the licence of Go (BSD).
var typeface = sync.OnceValue(func() *sfnt.Font {
	f, err := opentype.Parse(gomedium.TTF)
	if err != nil {
		panic(err) // it is part of the binary
	}
	return f
})

// unknown are up to five characters that the font has not.
func unknown(lines []string) string {
	var buf sfnt.Buffer
	var list []string
	for _, r := range strings.Join(lines, "") {
		if n, err := typeface().GlyphIndex(&buf, r); (err != nil || n == 0 || unicode.IsControl(r)) && len(list) < 5 {
			list = append(list, fmt.Sprintf("%U", r))
		}
	}
	return strings.Join(list, ", ")
}

// measured is a text that has its place in a picture.
type measured struct {
	lines     []string
	face      font.Face
	pad, step int // around the text, and from line to line
	w, h      int
}

// measure measures lines whose height is this many pixels, centred one below the other,
// and fails when they are wider than most pixels, or higher than maxSide.
func measure(lines []string, height float64, most int) (measured, error) {
	face, err := opentype.NewFace(typeface(), &opentype.FaceOptions{Size: height * 0.8, DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		return measured{}, fmt.Errorf("cannot be drawn: %w", err)
	}
	t := measured{lines: lines, face: face, pad: int(math.Ceil(height * 0.25)), step: int(math.Ceil(height))}
	width := 0
	for _, l := range lines {
		width = max(width, font.MeasureString(face, l).Ceil())
	}
	t.w, t.h = width+2*t.pad, t.step*len(lines)+t.pad
	if t.w > most {
		return t, fmt.Errorf("makes the text %d pixels wide, the picture has %d", t.w, most)
	}
	if t.h > maxSide {
		return t, fmt.Errorf("makes the text %d pixels high", t.h)
	}
	return t, nil
}

// draw makes a PNG of t. It takes time and memory linear in its pixels, of which it has
// at most 3840 by 4096. It is not to be called twice at once.
func (t measured) draw(fill, ground color.NRGBA) ([]byte, error) {
	canvas := image.NewNRGBA(image.Rect(0, 0, t.w, t.h))
	// Around the letters lies their own colour, unseen: what is between is not darker.
	clear := color.NRGBA{fill.R, fill.G, fill.B, 0}
	if ground.A > 0 {
		clear = ground
	}
	draw.Draw(canvas, canvas.Bounds(), image.NewUniform(clear), image.Point{}, draw.Src)
	ascent := t.face.Metrics().Ascent.Ceil()
	descent := t.face.Metrics().Descent.Ceil()
	for i, l := range t.lines {
		left := (t.w - font.MeasureString(t.face, l).Ceil()) / 2
		base := t.pad/2 + i*t.step + (t.step+ascent-descent)/2
		(&font.Drawer{Dst: canvas, Src: image.NewUniform(fill), Face: t.face, Dot: fixed.P(left, base)}).DrawString(l)
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, canvas); err != nil {
		return nil, fmt.Errorf("cannot be drawn: %w", err)
	}
	return out.Bytes(), nil
}
