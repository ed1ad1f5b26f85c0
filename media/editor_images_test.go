package media_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/png"
	"testing"

	"sluice.dev/sluice/media/plans"
)

// pictureOf is a PNG that does not compress.
func pictureOf(t *testing.T, side int) []byte {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, side, side))
	seed := uint32(1)
	for y := range side {
		for x := range side {
			seed = seed*1664525 + 1013904223
			m.SetNRGBA(x, y, color.NRGBA{uint8(seed >> 24), uint8(seed >> 16), uint8(seed >> 8), 255})
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, m); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// The images of overlays are kept with their render: they count as stored until it is
// forgotten.
func TestImagesOfOverlaysCountAsStored(t *testing.T) {
	t.Parallel()
	c := newCutter(t)
	raw := pictureOf(t, 100)
	body := object{"timeline": object{"clips": []object{{"asset_id": c.red}}, "overlays": []object{
		{"type": "image", "image": base64.StdEncoding.EncodeToString(raw)}, {"type": "image", "image": base64.StdEncoding.EncodeToString(raw), "end": 1},
	}}}
	var used int64
	if err := c.pool.QueryRow(t.Context(), `SELECT sum(size) FROM media_files`).Scan(&used); err != nil {
		t.Fatal(err)
	}
	images := int64(2 * len(raw))
	stored := func() (bytes, ofImages float64) {
		a := c.do("GET", "/v1/analytics/storage", nil).want(200)
		for _, row := range a.get("data").([]any) {
			if row := row.(map[string]any); row["kind"] == "render_images" {
				ofImages = row["bytes"].(float64)
			}
		}
		return a.get("used_bytes").(float64), ofImages
	}
	limit := func(bytes int64) {
		c.config.Plans.(plans.Table)[""] = plans.Limits{FileBytes: images, StorageBytes: bytes}
	}
	limit(used + 3*images)
	made := c.do("POST", "/v1/editor/renders", body).want(202)
	at := "/v1/editor/renders/" + made.text("id")
	if all, own := stored(); all != float64(used+images) || own != float64(images) {
		t.Errorf("%f, of which %f; want %d and %d", all, own, used+images, images)
	}
	c.do("DELETE", at, nil).wantError(409, "conflict")
	limit(used + images + images/2) // the video may take as much as a file, and the images are more
	c.do("POST", "/v1/editor/renders", body).wantError(403, "BILLING_002")
	limit(used + images)
	c.do("POST", "/v1/vod/upload?title=x", string(raw), "Content-Type", "video/mp4").wantError(403, "BILLING_002")
	c.do("POST", at+"/cancel", nil).want(200)
	c.as(otherAccount, "DELETE", at, nil).wantError(404, "not_found")
	c.do("DELETE", at, nil).want(204)
	c.do("GET", at, nil).wantError(404, "not_found")
	if all, own := stored(); all != float64(used) || own != 0 {
		t.Errorf("%f, of which %f, when the render is forgotten", all, own)
	}
}
