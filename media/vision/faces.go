package vision

import (
	"cmp"
	_ "embed"
	"image"
	"slices"
	"sync"

	pigo "github.com/esimov/pigo/core"
)

// facefinder is the cascade of pigo v1.4.6 (cascade/facefinder, MIT), which its module
// has in a folder without a package.
//
//go:embed facefinder
var facefinder []byte

// Face is one that is seen from the front.
type Face struct {
	Box   Box     `json:"box"`
	Score float64 `json:"score"` // how sure it is: from 5, without an end
}

// Box is a part of a picture, in pixels from its upper left corner.
type Box struct {
	X      int `json:"x"`
	Y      int `json:"y"`
	Width  int `json:"width"`
	Height int `json:"height"`
}

// Bounds of the search.
const (
	faceSide  = 800  // pixels of the longer side of the copy that is searched
	leastFace = 24   // pixels of a face there
	sure      = 5    // score of one that counts
	maxHits   = 4000 // places that may be one face together: joining them costs their square
	maxFaces  = 100
)

var cascade = sync.OnceValues(func() (*pigo.Pigo, error) { return pigo.NewPigo().Unpack(facefinder) })

// faces are those in a picture, the surest first.
func faces(gray *image.Gray) []Face {
	finder, err := cascade()
	if err != nil { // a test holds the file
		return []Face{}
	}
	scale := 1
	for max(gray.Rect.Dx(), gray.Rect.Dy()) > faceSide && min(gray.Rect.Dx(), gray.Rect.Dy()) > 2*leastFace {
		gray, scale = half(gray), 2*scale
	}
	w, h := gray.Rect.Dx(), gray.Rect.Dy()
	out := []Face{}
	if min(w, h) < leastFace || max(w, h) > 2*faceSide {
		return out // too narrow for a face
	}
	hits := finder.RunCascade(pigo.CascadeParams{MinSize: leastFace, MaxSize: min(w, h), ShiftFactor: 0.1, ScaleFactor: 1.1,
		ImageParams: pigo.ImageParams{Pixels: gray.Pix, Rows: h, Cols: w, Dim: w}}, 0)
	slices.SortFunc(hits, func(a, b pigo.Detection) int { return cmp.Compare(b.Q, a.Q) })
	found := finder.ClusterDetections(hits[:min(len(hits), maxHits)], 0.2)
	slices.SortFunc(found, func(a, b pigo.Detection) int { return cmp.Compare(b.Q, a.Q) })
	for _, d := range found[:min(len(found), maxFaces)] {
		if d.Q >= sure {
			out = append(out, Face{Box{max(0, d.Col-d.Scale/2) * scale, max(0, d.Row-d.Scale/2) * scale, d.Scale * scale, d.Scale * scale}, round(float64(d.Q), 1)})
		}
	}
	return out
}
