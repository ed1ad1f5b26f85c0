package audio

import (
	"encoding/binary"
	"time"
)

// digits are the keys of a telephone by their number (RFC 4733, table 3).
const digits = "0123456789*#ABCD"

// Key is one that was pressed.
type Key struct {
	Digit  string
	Lasted time.Duration
}

// Keys hears which keys are pressed, each once, from its packets, of which there are
// several for each.
type Keys struct {
	Rate int // of the RTP clock, in Hz

	last  uint32
	heard bool
}

// Read reads the payload of a telephone event (RFC 4733, 2.3) with its timestamp. It
// returns a key when its end is heard for the first time. It takes constant time.
func (k *Keys) Read(timestamp uint32, payload []byte) (Key, bool) {
	if len(payload) < 4 || int(payload[0]) >= len(digits) || payload[1]&0x80 == 0 || k.Rate <= 0 {
		return Key{}, false
	}
	if k.heard && k.last == timestamp {
		return Key{}, false
	}
	k.last, k.heard = timestamp, true
	ticks := time.Duration(binary.BigEndian.Uint16(payload[2:]))
	return Key{digits[payload[0] : payload[0]+1], ticks * time.Second / time.Duration(k.Rate)}, true
}
