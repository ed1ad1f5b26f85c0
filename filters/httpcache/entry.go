package httpcache

import (
	"encoding/binary"
	"strconv"
	"strings"

	"sluice.dev/sluice/filters/host/wire"
)

// Entry is an answer that is kept.
type Entry struct {
	Key     Key
	Stored  uint64 // when, in unix milliseconds
	Age     uint32 // that it had then, in seconds
	Status  uint16
	Headers [][2]string
	Body    []byte
}

// Append encodes e behind dst.
func (e Entry) Append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(append(dst, e.Key[:]...), e.Stored)
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(e.Age)), uint64(e.Status))
	dst = binary.AppendUvarint(dst, uint64(len(e.Headers)))
	for _, h := range e.Headers {
		dst = wire.AppendText(wire.AppendText(dst, h[0], maxHeaders), h[1], maxHeaders)
	}
	return append(dst, e.Body...)
}

// ParseEntry reads what Append wrote, of which the body stays a part; ok is false for
// anything else. It takes time and memory linear in the headers.
func ParseEntry(b []byte) (e Entry, ok bool) {
	r := wire.NewReader(b)
	copy(e.Key[:], r.Bytes(uint64(len(e.Key))))
	e.Stored, e.Age, e.Status = r.Uint64(), uint32(r.Number(1<<31)), uint16(r.Number(599))
	e.Headers = make([][2]string, r.CountOf(200, 2))
	for i := range e.Headers {
		e.Headers[i] = [2]string{r.Text(maxHeaders), r.Text(maxHeaders)}
	}
	e.Body = r.Rest()
	return e, !r.Failed()
}

// unchanged are the headers of an answer that says that what the client has is still good
// (RFC 9110, 15.4.5).
const unchanged = " cache-control content-location date etag expires vary last-modified "

// Reply is what a request gets of e at a time in unix milliseconds: all of it, or that
// what it has is still good.
func (e Entry) Reply(a Ask, millis uint64) (status uint32, headers [][2]string, body []byte) {
	still := e.isStillGood(a)
	headers = make([][2]string, 0, len(e.Headers)+3)
	for _, h := range e.Headers {
		if !still || strings.Contains(unchanged, " "+h[0]+" ") {
			headers = append(headers, h)
		}
	}
	age := uint64(e.Age) + (max(millis, e.Stored)-e.Stored)/1000
	headers = append(headers, [2]string{"age", strconv.FormatUint(age, 10)})
	if still {
		return 304, headers, nil
	}
	return uint32(e.Status), headers, e.Body
}

// isStillGood reports whether the client that asks has e (RFC 9110, 13.1).
func (e Entry) isStillGood(a Ask) bool {
	var tag, modified string
	for _, h := range e.Headers {
		switch h[0] {
		case "etag":
			tag = h[1]
		case "last-modified":
			modified = h[1]
		}
	}
	if a.noneMatch == "" {
		return modified != "" && a.modifiedSince == modified
	}
	for rest := a.noneMatch; rest != ""; {
		var one string
		one, rest = cutDirective(rest)
		one = strings.TrimSpace(one)
		if one == "*" || tag != "" && strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}
