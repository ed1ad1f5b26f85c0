package schedules

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"time"
)

// The prefixes of ids.
const (
	schedulePrefix  = "schedule_"
	executionPrefix = "exec_"
)

// alphabet is Crockford's, in lower case, which sorts as the bytes do.
var alphabet = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// newID returns the prefix and 26 characters: 48 bits of time, by which ids
// sort, and 80 random bits.
func newID(prefix string, now time.Time) string {
	raw := stamp(now)
	rand.Read(raw[6:])
	return prefix + alphabet.EncodeToString(raw[:])
}

// firstID returns the lowest id of a time: ids made before it are smaller.
func firstID(prefix string, at time.Time) string {
	raw := stamp(at)
	return prefix + alphabet.EncodeToString(raw[:])
}

func stamp(at time.Time) (raw [16]byte) {
	binary.BigEndian.PutUint64(raw[:8], uint64(max(0, at.UnixMilli()))<<16)
	return raw
}
