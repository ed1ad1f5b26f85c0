package wire

import (
	"encoding/binary"
	"math"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

func TestValuesComeAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	b := binary.AppendUvarint(nil, math.MaxUint64)
	b = append(binary.AppendUvarint(b, 5), "hello"...)
	b = append(b, 7)
	b = binary.LittleEndian.AppendUint32(b, 1<<31)
	b = binary.LittleEndian.AppendUint64(b, 1<<63)
	b = append(b, 2, 'x', 'y')
	r := NewReader(b)
	if n := r.Number(math.MaxUint64); n != math.MaxUint64 {
		t.Error(n)
	}
	if s := r.Text(5); s != "hello" {
		t.Error(s)
	}
	if a, b, c := r.Byte(), r.Uint32(), r.Uint64(); a != 7 || b != 1<<31 || c != 1<<63 {
		t.Error(a, b, c)
	}
	if r.Done() {
		t.Error("done before the end")
	}
	if n := r.Count(100); n != 2 || string(r.Bytes(n)) != "xy" || !r.Done() {
		t.Error(n, r)
	}
}

// What does not fit fails the reader, and nothing is read of it after that.
func TestWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		b    []byte
		read func(*Reader)
	}{
		"a number beyond its bound":    {[]byte{9, 1}, func(r *Reader) { r.Number(8) }},
		"a number without end":         {[]byte{0x80, 0x80}, func(r *Reader) { r.Number(math.MaxUint64) }},
		"a number of more than 64 bit": {append(make([]byte, 0, 11), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1), func(r *Reader) { r.Number(math.MaxUint64) }},
		"no number":                    {nil, func(r *Reader) { r.Number(math.MaxUint64) }},
		"more values than bytes":       {[]byte{3, 1}, func(r *Reader) { r.Count(100) }},
		"more bytes than there are":    {[]byte{1, 2}, func(r *Reader) { r.Bytes(3) }},
		"a length beyond all":          {binary.AppendUvarint(nil, math.MaxUint64), func(r *Reader) { r.Text(math.MaxUint64) }},
		"a text beyond its bound":      {[]byte{2, 'a', 'b'}, func(r *Reader) { r.Text(1) }},
		"no byte":                      {nil, func(r *Reader) { r.Byte() }},
		"three bytes of four":          {[]byte{1, 2, 3}, func(r *Reader) { r.Uint32() }},
		"seven bytes of eight":         {make([]byte, 7), func(r *Reader) { r.Uint64() }},
		"no sense":                     {[]byte{1, 2, 3}, func(r *Reader) { r.Fail() }},
	} {
		r := NewReader(c.b)
		c.read(&r)
		if !r.Failed() || r.Done() || r.Byte() != 0 || r.Number(9) != 0 || r.Text(9) != "" || r.Bytes(1) != nil {
			t.Errorf("%s: reads on", name)
		}
	}
}

// texts is where what was read goes.
var texts string

func FuzzReader(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5}, []byte{0, 1, 2, 3, 4, 5})
	f.Fuzz(func(t *testing.T, b, how []byte) {
		// Each text has a string of its own, at most 16 bytes longer than it is.
		growth.Linear(t, len(b)+16*len(how), 2, 256, func() {
			r := NewReader(b)
			for _, h := range how {
				texts = r.Text(uint64(h))
			}
		})
		r, taken := NewReader(b), 0
		for _, h := range how {
			before := len(r.b)
			switch h % 6 {
			case 0:
				r.Number(uint64(h))
			case 1:
				if n := r.Count(uint64(h)); n > uint64(before) {
					t.Fatalf("%d values in %d bytes", n, before)
				}
			case 2:
				taken += len(r.Text(uint64(h)))
			case 3:
				r.Byte()
			case 4:
				r.Uint32()
			case 5:
				r.Uint64()
			}
			if len(r.b) > before || taken > len(b) {
				t.Fatal("more was read than there is")
			}
		}
	})
}
