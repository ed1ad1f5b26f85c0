package vision

import (
	"image"
	"image/color"
	"testing"
)

// Each of the eight ways to hold a camera is undone: the mark is in the upper left corner
// again, and beside it, along the upper edge, the second.
func TestPicturesAreTurnedUpright(t *testing.T) {
	t.Parallel()
	first, second := color.RGBA{255, 0, 0, 255}, color.RGBA{0, 255, 0, 255}
	for orientation, c := range map[int]struct{ size, first, second image.Point }{ // where the marks are in the file, of a picture of 3 by 2
		1: {image.Pt(3, 2), image.Pt(0, 0), image.Pt(1, 0)}, 2: {image.Pt(3, 2), image.Pt(2, 0), image.Pt(1, 0)},
		3: {image.Pt(3, 2), image.Pt(2, 1), image.Pt(1, 1)}, 4: {image.Pt(3, 2), image.Pt(0, 1), image.Pt(1, 1)},
		5: {image.Pt(2, 3), image.Pt(0, 0), image.Pt(0, 1)}, 6: {image.Pt(2, 3), image.Pt(0, 2), image.Pt(0, 1)},
		7: {image.Pt(2, 3), image.Pt(1, 2), image.Pt(1, 1)}, 8: {image.Pt(2, 3), image.Pt(1, 0), image.Pt(1, 1)},
	} {
		file := image.NewRGBA(image.Rectangle{Max: c.size})
		file.Set(c.first.X, c.first.Y, first)
		file.Set(c.second.X, c.second.Y, second)
		if got := upright(file, orientation); got.Rect.Max != image.Pt(3, 2) || got.At(0, 0) != first || got.At(1, 0) != second {
			t.Errorf("%d: %v, %v %v", orientation, got.Rect, got.At(0, 0), got.At(1, 0))
		}
	}
}
