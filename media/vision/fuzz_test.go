package vision

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"net/url"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

func FuzzParse(f *testing.F) {
	f.Add("features=text,faces&times=1,2.5&language=en,de&prompt=What%3F&asset_id=vod_1")
	f.Add("times=NaN,-1&features=smells&language=%00")
	f.Fuzz(func(t *testing.T, query string) {
		q, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		var a Ask
		growth.Linear(t, len(query), 60, 64<<10, func() { a, err = Parse(q) })
		if err == nil && (len(a.Times) > maxTimes || len(a.Features) > len(known) || len(a.Languages) > maxLanguages) {
			t.Errorf("%+v", a)
		}
	})
}

func FuzzTable(f *testing.F) {
	f.Add([]byte("level\tpage_num\n5\t1\t1\t1\t1\t1\t40\t35\t53\t25\t97.1\tThe\n5\t1\t2\t1\t1\t1\t40\t99999\t53\t25\tNaN\tstream\n"))
	f.Fuzz(func(t *testing.T, table []byte) {
		var text Text
		growth.Linear(t, len(table), 60, 64<<10, func() { text = ParseTable(table, 2) })
		for _, w := range text.Words {
			if w.Text == "" || w.Confidence < 0 || w.Confidence > 1 || w.Box.X < 0 || w.Box.Width > 2*maxSide {
				t.Errorf("%+v", w)
			}
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add(`Here: {"description": "A sign.", "text": "STOP", "objects": [{"label": "sign", "count": -2}]} I hope it helps.`)
	f.Add("no JSON } {")
	a := Ask{Features: known}
	f.Fuzz(func(t *testing.T, said string) {
		var p Picture
		growth.Linear(t, len(said), 60, 64<<10, func() { ParseAnswer(said, a, &p) })
		if len(p.Description) > maxSaid || p.Text == nil || len(p.Text.Text) > maxSaid || len(p.Objects) > maxObjects {
			t.Errorf("%d bytes, %d objects", len(p.Description), len(p.Objects))
		}
	})
}

// No bytes bring the confined process down, and what it says makes sense. Its cost is the
// decoders', in the pixels that are bounded.
func FuzzLook(f *testing.F) {
	p := image.NewPaletted(image.Rect(0, 0, 40, 30), color.Palette{color.Black, color.White, color.RGBA{200, 30, 30, 255}})
	for i := range p.Pix {
		p.Pix[i] = uint8(i % 3)
	}
	var pngs, jpegs, gifs bytes.Buffer
	if png.Encode(&pngs, p) != nil || jpeg.Encode(&jpegs, p, nil) != nil || gif.Encode(&gifs, p, nil) != nil {
		f.Fatal("no seeds")
	}
	for _, b := range []bytes.Buffer{pngs, jpegs, gifs} {
		f.Add(b.Bytes())
	}
	f.Add([]byte("\xff\xd8\xff\xe1\x00\x10Exif\x00\x00II\x2a\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if c, _, err := image.DecodeConfig(bytes.NewReader(raw)); err == nil && c.Width*c.Height > 1<<20 {
			return // which costs time and teaches nothing
		}
		for _, kind := range []string{copyGray, copyJPEG} {
			got, shown := look(bytes.NewReader(raw), task{Faces: true, Colors: true, Copy: kind})
			if (got.Fault == "") != (shown != nil) || shown != nil && write(&bytes.Buffer{}, shown, kind) != nil || len(got.Colors) > maxColors {
				t.Errorf("%+v", got)
			}
		}
	})
}
