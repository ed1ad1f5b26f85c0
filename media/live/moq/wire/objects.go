package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/quic-go/quic-go/quicvarint"
)

// MaxObject bounds an object, in bytes: a key frame in high quality, several times.
const MaxObject = 8 << 20

// maxExtensions bounds the extension headers of an object, in bytes; they are
// skipped.
const maxExtensions = 16 << 10

// Types of a subgroup's stream (section 10.4.2): a base and bits that say which
// fields there are.
const (
	subgroupBase = 0x10
	subgroupLast = 0x1d
	hasExtension = 0x01
	idExplicit   = 0x02 << 1
	idMode       = 0x03 << 1
)

// Subgroup is the head of a stream of objects.
type Subgroup struct {
	Alias    uint64
	Group    uint64
	Priority byte

	extensions bool
}

// AppendSubgroup begins a stream: subgroup 0, objects without extensions, the last of
// which ends the group.
func AppendSubgroup(b []byte, s Subgroup) []byte {
	b = quicvarint.Append(b, subgroupBase|0x08)
	b = quicvarint.Append(b, s.Alias)
	b = quicvarint.Append(b, s.Group)
	return append(b, s.Priority)
}

// AppendObject adds an object to b. Ids of one
// stream follow each other without gaps, so each delta is zero.
func AppendObject(b, payload []byte) []byte {
	b = quicvarint.Append(b, 0)
	b = quicvarint.Append(b, uint64(len(payload)))
	if len(payload) == 0 {
		b = quicvarint.Append(b, 0) // status: normal
	}
	return append(b, payload...)
}

// ReadSubgroup reads the head of a stream. It fails with ErrMalformed when the
// stream has another type.
func ReadSubgroup(r *bufio.Reader) (s Subgroup, err error) {
	t, err := quicvarint.Read(r)
	if err != nil {
		return s, err
	}
	if t < subgroupBase || t > subgroupLast || t&idMode == idMode {
		return s, fmt.Errorf("%w: stream type %#x", ErrMalformed, t)
	}
	s.extensions = t&hasExtension != 0
	fields := []*uint64{&s.Alias, &s.Group}
	if t&idMode == idExplicit {
		fields = append(fields, new(uint64))
	}
	for _, f := range fields {
		if *f, err = quicvarint.Read(r); err != nil {
			return s, err
		}
	}
	s.Priority, err = r.ReadByte()
	return s, err
}

// ReadObject reads the next object of s into memory of its own, at most MaxObject,
// as it arrives. An object without payload is nil. io.EOF: there is none left.
func (s Subgroup) ReadObject(r *bufio.Reader) ([]byte, error) {
	if _, err := quicvarint.Read(r); err != nil { // the id
		return nil, err
	}
	if err := s.skipExtensions(r); err != nil {
		return nil, cut(err)
	}
	n, err := quicvarint.Read(r)
	if err != nil {
		return nil, cut(err)
	}
	if n == 0 {
		_, err := quicvarint.Read(r) // its status
		return nil, cut(err)
	}
	if n > MaxObject {
		return nil, fmt.Errorf("%w: an object of %d bytes", ErrMalformed, n)
	}
	payload, err := readUpTo(r, int(n))
	return payload, cut(err)
}

// skipExtensions passes over an object's extension headers.
func (s Subgroup) skipExtensions(r *bufio.Reader) error {
	if !s.extensions {
		return nil
	}
	n, err := quicvarint.Read(r)
	if err != nil {
		return err
	}
	if n > maxExtensions {
		return fmt.Errorf("%w: %d bytes of extensions", ErrMalformed, n)
	}
	_, err = r.Discard(int(n))
	return err
}

// step is how much memory is taken on the word of a length alone.
const step = 64 << 10

// readUpTo reads n bytes. Memory grows with what has arrived, not with n.
func readUpTo(r io.Reader, n int) ([]byte, error) {
	out := make([]byte, 0, min(n, step))
	for len(out) < n {
		if len(out) == cap(out) {
			grown := make([]byte, len(out), min(n, 2*cap(out)))
			copy(grown, out)
			out = grown
		}
		got, err := io.ReadFull(r, out[len(out):cap(out)])
		if out = out[:len(out)+got]; err != nil {
			return nil, err
		}
	}
	return out, nil
}

// cut says that a stream ended in the middle of an object.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
