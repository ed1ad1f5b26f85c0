package vision

import (
	"cmp"
	"fmt"
	"image"
	"math"
	"slices"
)

// Measures are what light and detail of a picture are like.
type Measures struct {
	Brightness float64 `json:"brightness"` // mean, from 0 (black) to 1 (white)
	Contrast   float64 `json:"contrast"`   // standard deviation of brightness, from 0 to 0.5
	// Sharpness is the variance of the Laplacian of a copy 512 pixels wide: below 100 a
	// picture is usually blurred, or has little in it.
	Sharpness float64 `json:"sharpness"`
}

// Color is one of a picture's dominant colours.
type Color struct {
	Hex   string  `json:"hex"`   // #rrggbb
	Share float64 `json:"share"` // of the picture, from 0 to 1
}

// Bounds of what is looked at.
const (
	sharpWidth = 512
	maxSamples = 1 << 16 // pixels whose colours are counted
	maxColors  = 5
	alike      = 48 // distance, of 0 to 441, below which colours are one
	leastShare = 0.01
)

// luma is the brightness of each pixel (ITU-R BT.601).
func luma(src *image.RGBA) *image.Gray {
	dst := image.NewGray(src.Rect)
	for i := range dst.Pix {
		p := src.Pix[4*i : 4*i+4 : 4*i+4]
		dst.Pix[i] = uint8((299*uint32(p[0]) + 587*uint32(p[1]) + 114*uint32(p[2]) + 500) / 1000)
	}
	return dst
}

// half is a picture of half the width and height, at least one pixel of each.
func half(src *image.Gray) *image.Gray {
	w, h := max(1, src.Rect.Dx()/2), max(1, src.Rect.Dy()/2)
	dst := image.NewGray(image.Rect(0, 0, w, h))
	right, below := min(1, src.Rect.Dx()-1), min(1, src.Rect.Dy()-1)*src.Stride
	for y := range h {
		for x := range w {
			p := 2*y*src.Stride + 2*x
			dst.Pix[y*w+x] = uint8((uint32(src.Pix[p]) + uint32(src.Pix[p+right]) + uint32(src.Pix[p+below]) + uint32(src.Pix[p+below+right]) + 2) / 4)
		}
	}
	return dst
}

// measure looks at each pixel a few times.
func measure(gray *image.Gray) Measures {
	mean, deviation := spread(gray.Pix)
	for gray.Rect.Dx() > sharpWidth && gray.Rect.Dy() > 2 {
		gray = half(gray)
	}
	return Measures{Brightness: round(mean/255, 3), Contrast: round(deviation/255, 3), Sharpness: round(sharpness(gray), 1)}
}

func spread(values []uint8) (mean, deviation float64) {
	var sum, squares uint64
	for _, v := range values {
		sum += uint64(v)
		squares += uint64(v) * uint64(v)
	}
	n := float64(len(values))
	mean = float64(sum) / n
	return mean, math.Sqrt(max(0, float64(squares)/n-mean*mean))
}

func sharpness(g *image.Gray) float64 {
	var sum, squares, n float64
	for y := 1; y < g.Rect.Dy()-1; y++ {
		for x := 1; x < g.Rect.Dx()-1; x++ {
			p := y*g.Stride + x
			l := float64(int(g.Pix[p-1]) + int(g.Pix[p+1]) + int(g.Pix[p-g.Stride]) + int(g.Pix[p+g.Stride]) - 4*int(g.Pix[p]))
			sum += l
			squares += l * l
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return squares/n - sum/n*sum/n
}

// tone is one colour and how many pixels have it, or nearly so.
type tone struct {
	r, g, b float64 // sums
	n       float64
}

func (t tone) at() [3]float64 { return [3]float64{t.r / t.n, t.g / t.n, t.b / t.n} }

// colors are the dominant colours, the most frequent first. It counts maxSamples pixels at
// most, in 4,096 bins, and joins those that are alike.
func colors(p *image.RGBA) []Color {
	w, h := p.Rect.Dx(), p.Rect.Dy()
	step := max(1, int(math.Ceil(math.Sqrt(float64(w)*float64(h)/maxSamples))))
	bins, total := map[int]tone{}, 0.0
	for y := 0; y < h; y += step {
		for x := 0; x < w; x += step {
			c := p.Pix[p.PixOffset(x, y):][:3]
			bin := int(c[0]>>4)<<8 | int(c[1]>>4)<<4 | int(c[2]>>4)
			t := bins[bin]
			bins[bin] = tone{t.r + float64(c[0]), t.g + float64(c[1]), t.b + float64(c[2]), t.n + 1}
			total++
		}
	}
	var list []tone
	for _, t := range bins {
		list = append(list, t)
	}
	byCount := func(a, b tone) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.r/a.n, b.r/b.n), cmp.Compare(a.g/a.n, b.g/b.n))
	}
	slices.SortFunc(list, byCount)
	var joined []tone
	for _, t := range list {
		i := slices.IndexFunc(joined, func(j tone) bool { return distance(j.at(), t.at()) < alike })
		switch {
		case i >= 0:
			j := joined[i]
			joined[i] = tone{j.r + t.r, j.g + t.g, j.b + t.b, j.n + t.n}
		case len(joined) < 16:
			joined = append(joined, t)
		}
	}
	slices.SortFunc(joined, byCount)
	out := []Color{}
	for _, t := range joined[:min(len(joined), maxColors)] {
		c := t.at()
		if share := t.n / total; share >= leastShare {
			out = append(out, Color{fmt.Sprintf("#%02x%02x%02x", uint8(c[0]), uint8(c[1]), uint8(c[2])), round(share, 3)})
		}
	}
	return out
}

func distance(a, b [3]float64) float64 {
	return math.Sqrt((a[0]-b[0])*(a[0]-b[0]) + (a[1]-b[1])*(a[1]-b[1]) + (a[2]-b[2])*(a[2]-b[2]))
}

// round is a number with so many decimals.
func round(v float64, decimals int) float64 {
	p := math.Pow10(decimals)
	return math.Round(v*p) / p
}
