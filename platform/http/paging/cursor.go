package paging

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxCursor bounds the text of a cursor: the longest name, the longest id, and room.
const maxCursor = 4096

// maxID bounds the id in a cursor, in bytes.
const maxID = 200

// Place is right after one row: the value by which the list is ordered, and the row's id.
type Place struct{ Value, ID string }

// A cursor is a place with the order in which it is one, behind a checksum that has the list in it
// too: what is mangled, or of another list, is refused. It opens nothing, so that it is not signed:
// whose rows are read never comes from it.

// write gives the cursor as callers see it.
func (o offer) write(sort string, at Place) string {
	text := sort + "\x00" + at.ID + "\x00" + at.Value
	raw := binary.BigEndian.AppendUint32(nil, o.sum(text))
	return base64.RawURLEncoding.EncodeToString(append(raw, text...))
}

func (o offer) sum(text string) uint32 {
	return crc32.ChecksumIEEE([]byte(o.list + "\x00" + text))
}

// read reads what write has written. Nothing that the database could stumble over passes. It takes
// time and memory linear in text, of which it reads maxCursor bytes at most.
func (o offer) read(text string) (sort string, at Place, ok bool) {
	if len(text) > maxCursor {
		return "", at, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) < 4 || binary.BigEndian.Uint32(raw) != o.sum(string(raw[4:])) {
		return "", at, false
	}
	sort, rest, _ := strings.Cut(string(raw[4:]), "\x00")
	at.ID, at.Value, ok = strings.Cut(rest, "\x00")
	column := strings.TrimPrefix(sort, "-")
	if !ok || !slices.Contains(o.sorts, column) || len(at.ID) > maxID || !storable(at.ID) || !storable(at.Value) {
		return "", Place{}, false
	}
	if slices.Contains(o.moments, column) || slices.Contains(o.numbers, column) {
		n, err := strconv.ParseInt(at.Value, 10, 64)
		ok = err == nil && (slices.Contains(o.numbers, column) || n > oldest && n < latest)
	}
	if o.numbered {
		_, err := strconv.ParseInt(at.ID, 10, 64)
		ok = ok && err == nil
	}
	return sort, at, ok
}

// Times in cursors, in microseconds since 1970, lie between these.
var (
	oldest = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	latest = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
)
