package vision

import (
	"encoding/binary"
	"image"
)

// orientation is how a JPEG file says that its picture is to be turned: 1 to 8 (Exif 2.3,
// tag 0x0112); 1, as it is, where it says nothing. It looks at the segments before the
// picture, once, and at 64 entries of one of them.
func orientation(raw []byte) int {
	for at := 2; at+4 <= len(raw) && raw[at] == 0xff; {
		size := int(binary.BigEndian.Uint16(raw[at+2:]))
		if raw[at+1] == 0xda || size < 2 || at+2+size > len(raw) {
			return 1
		}
		body := raw[at+4 : at+2+size]
		if raw[at+1] == 0xe1 && len(body) > 14 && string(body[:6]) == "Exif\x00\x00" {
			return turned(body[6:])
		}
		at += 2 + size
	}
	return 1
}

// turned reads the tag in a TIFF structure.
func turned(tiff []byte) int {
	var order binary.ByteOrder = binary.BigEndian
	if string(tiff[:2]) == "II" {
		order = binary.LittleEndian
	}
	first := order.Uint32(tiff[4:])
	if uint64(first)+2 > uint64(len(tiff)) {
		return 1
	}
	entries := tiff[first+2:]
	for range min(int(order.Uint16(tiff[first:])), 64, len(entries)/12) {
		if order.Uint16(entries) == 0x0112 {
			if n := int(order.Uint16(entries[8:])); n >= 1 && n <= 8 {
				return n
			}
			return 1
		}
		entries = entries[12:]
	}
	return 1
}

// upright is a picture turned as an orientation says.
func upright(src *image.RGBA, orientation int) *image.RGBA {
	if orientation <= 1 {
		return src
	}
	w, h := src.Rect.Dx(), src.Rect.Dy()
	dst := image.NewRGBA(image.Rect(0, 0, w, h))
	if orientation >= 5 {
		dst = image.NewRGBA(image.Rect(0, 0, h, w))
	}
	for y := range h {
		for x := range w {
			tx, ty := x, y
			switch orientation {
			case 2:
				tx = w - 1 - x
			case 3:
				tx, ty = w-1-x, h-1-y
			case 4:
				ty = h - 1 - y
			case 5:
				tx, ty = y, x
			case 6:
				tx, ty = h-1-y, x
			case 7:
				tx, ty = h-1-y, w-1-x
			case 8:
				tx, ty = y, w-1-x
			}
			copy(dst.Pix[dst.PixOffset(tx, ty):][:4], src.Pix[src.PixOffset(x, y):][:4])
		}
	}
	return dst
}
