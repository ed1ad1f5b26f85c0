// Package audio turns the RTP payloads of a telephone call into even sound: decoded,
// in order, with silence where nothing came.
package audio

import (
	"errors"
	"time"

	"github.com/pion/opus"
	"sluice.dev/sluice/media/phone/sdp"
)

// Frame is how much sound is taken at a time.
const Frame = 20 * time.Millisecond

// Decoder decodes the payloads of one codec to samples of one channel.
type Decoder struct {
	Rate int // of the samples, in Hz: the RTP clock's

	codec string
	opus  opus.Decoder
	room  []int16
}

// maxPayload bounds a payload, in bytes: what a datagram that is not split may carry.
const maxPayload = 1500

// maxFrame is the longest that an Opus packet may last, 120 ms at 48 kHz.
const maxFrame = 5760

// ErrPayload says that a payload is too long to be sound.
var ErrPayload = errors.New("the payload is too long")

// NewDecoder makes one for c.
func NewDecoder(c sdp.Codec) (*Decoder, error) {
	d := &Decoder{Rate: c.Rate, codec: c.Name}
	if c.Name != sdp.Opus {
		return d, nil
	}
	d.room = make([]int16, maxFrame)
	var err error
	d.opus, err = opus.NewDecoderWithOutput(c.Rate, 1)
	return d, err
}

// Decode returns the samples of a payload, which are good until the next call. It takes
// time linear in the payload, which it refuses beyond 1,500 bytes, and in the sound, of
// which a packet has at most 120 ms.
func (d *Decoder) Decode(payload []byte) ([]int16, error) {
	if len(payload) > maxPayload {
		return nil, ErrPayload
	}
	if d.codec == sdp.Opus {
		if len(payload) == 0 {
			return nil, nil
		}
		n, err := d.opus.DecodeToInt16(payload, d.room)
		if err != nil {
			return nil, err
		}
		return d.room[:min(n, len(d.room))], nil
	}
	table := &fromMu
	if d.codec == sdp.PCMA {
		table = &fromA
	}
	d.room = d.room[:0]
	for _, b := range payload {
		d.room = append(d.room, table[b])
	}
	return d.room, nil
}

// Silence is a payload of one Frame of silence.
func Silence(c sdp.Codec) []byte {
	if c.Name == sdp.Opus {
		return []byte{0xf8, 0xff, 0xfe} // a CELT frame of 20 ms with nothing in it
	}
	b := byte(0xff)
	if c.Name == sdp.PCMA {
		b = 0xd5
	}
	out := make([]byte, 160)
	for i := range out {
		out[i] = b
	}
	return out
}

// fromMu and fromA are the samples of G.711's bytes (ITU-T G.711, tables 2 and 1).
var fromMu, fromA = tables()

func tables() (mu, a [256]int16) {
	for i := range 256 {
		m := ^byte(i)
		v := (int16(m&0x0f)<<3+0x84)<<(m>>4&7) - 0x84
		if m&0x80 != 0 {
			v = -v
		}
		mu[i] = v
		x := byte(i) ^ 0x55
		v = int16(x&0x0f)<<4 + 8
		if e := x >> 4 & 7; e > 0 {
			v = (v + 0x100) << (e - 1)
		}
		if x&0x80 == 0 {
			v = -v
		}
		a[i] = v
	}
	return mu, a
}
