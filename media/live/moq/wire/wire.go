// Package wire reads and writes what draft-ietf-moq-transport-14 puts on streams:
// control messages, and the objects of subgroups. It knows no connection.
//
// What it costs: a control message has at most MaxMessage bytes, is decoded in time
// linear in them and refers to them instead of copying; a count that promises more
// than the message can hold is refused before anything is allocated for it.
package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/quic-go/quic-go/quicvarint"
)

// Draft is what is spoken here.
const Draft = "draft-ietf-moq-transport-14"

// Version is its number in CLIENT_SETUP and SERVER_SETUP.
const Version = 0xff00000e

// ALPN is its name where MoQ is spoken on QUIC itself (section 3.1.2).
const ALPN = "moq-00"

// MaxMessage bounds a control message, in bytes. The draft allows 65,535; what is
// asked here fits into far less.
const MaxMessage = 16 << 10

// Bounds of a track's name (section 2.4.1).
const (
	maxFields   = 32
	maxFullName = 4096
)

// maxParameters bounds the parameters of a message.
const maxParameters = 32

// ErrMalformed says that bytes are no message of the draft.
var ErrMalformed = errors.New("malformed MoQ message")

// Type is the type of a control message (section 9).
type Type uint64

// The types that are read or written here.
const (
	SubscribeUpdate         Type = 0x02
	Subscribe               Type = 0x03
	SubscribeOK             Type = 0x04
	SubscribeError          Type = 0x05
	PublishNamespace        Type = 0x06
	PublishNamespaceOK      Type = 0x07
	PublishNamespaceError   Type = 0x08
	PublishNamespaceDone    Type = 0x09
	Unsubscribe             Type = 0x0a
	PublishDone             Type = 0x0b
	PublishNamespaceCancel  Type = 0x0c
	TrackStatus             Type = 0x0d
	TrackStatusError        Type = 0x0f
	GoAway                  Type = 0x10
	SubscribeNamespace      Type = 0x11
	SubscribeNamespaceOK    Type = 0x12
	SubscribeNamespaceError Type = 0x13
	UnsubscribeNamespace    Type = 0x14
	MaxRequestID            Type = 0x15
	Fetch                   Type = 0x16
	FetchCancel             Type = 0x17
	FetchError              Type = 0x19
	RequestsBlocked         Type = 0x1a
	Publish                 Type = 0x1d
	PublishError            Type = 0x1f
	ClientSetup             Type = 0x20
	ServerSetup             Type = 0x21
)

// Setup parameters (section 9.3.1).
const (
	ParamPath         = 0x01
	ParamMaxRequestID = 0x02
)

// Message is a control message. Body is what follows its length.
type Message struct {
	Type Type
	Body []byte
}

// ReadMessage reads one. It fails with ErrMalformed when it is longer than
// MaxMessage.
func ReadMessage(r *bufio.Reader) (Message, error) {
	t, err := quicvarint.Read(r)
	if err != nil {
		return Message{}, err
	}
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return Message{}, err
	}
	n := int(binary.BigEndian.Uint16(size[:]))
	if n > MaxMessage {
		return Message{}, fmt.Errorf("%w: %d bytes", ErrMalformed, n)
	}
	body := make([]byte, n)
	_, err = io.ReadFull(r, body)
	return Message{Type: Type(t), Body: body}, err
}

// Append writes m to b. Body has at most 65,535 bytes.
func (m Message) Append(b []byte) []byte {
	b = quicvarint.Append(b, uint64(m.Type))
	b = binary.BigEndian.AppendUint16(b, uint16(len(m.Body)))
	return append(b, m.Body...)
}

// Decoder takes fields from the body of a message. After a field that is not there,
// all further ones are zero and Err says so.
type Decoder struct {
	rest []byte
	err  error
}

// Decode begins to read a body.
func Decode(body []byte) *Decoder { return &Decoder{rest: body} }

// Err is ErrMalformed when a field was missing, or bytes are left.
func (d *Decoder) Err() error {
	if d.err == nil && len(d.rest) > 0 {
		d.err = fmt.Errorf("%w: %d bytes too many", ErrMalformed, len(d.rest))
	}
	return d.err
}

// fail remembers the first fault.
func (d *Decoder) fail(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrMalformed, what)
	}
	d.rest = nil
}

// Varint takes a variable-length integer (RFC 9000, section 16).
func (d *Decoder) Varint() uint64 {
	v, n, err := quicvarint.Parse(d.rest)
	if err != nil {
		d.fail("integer")
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// Byte takes one byte.
func (d *Decoder) Byte() byte {
	if len(d.rest) == 0 {
		d.fail("byte")
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

// Bytes takes a length and as many bytes, which stay part of the body.
func (d *Decoder) Bytes() []byte {
	n := d.Varint()
	if n > uint64(len(d.rest)) {
		d.fail("length")
		return nil
	}
	out := d.rest[:n]
	d.rest = d.rest[n:]
	return out
}

// Namespace takes a tuple of up to 32 fields.
func (d *Decoder) Namespace() Namespace {
	n := d.Varint()
	if n > maxFields || n > uint64(len(d.rest)) {
		d.fail("namespace")
		return nil
	}
	var ns Namespace
	size := 0
	for range n {
		field := d.Bytes()
		if size += len(field); size > maxFullName {
			d.fail("namespace")
			return nil
		}
		ns = append(ns, string(field))
	}
	return ns
}

// Location is a group and an object in it.
type Location struct{ Group, Object uint64 }

// Location takes one.
func (d *Decoder) Location() Location { return Location{d.Varint(), d.Varint()} }

// Parameters are those of a message: integers for even types, bytes for odd ones.
// Of several of one type the last counts.
type Parameters struct {
	Ints  map[uint64]uint64
	Texts map[uint64]string
}

// Parameters takes them (section 1.4.2).
func (d *Decoder) Parameters() Parameters {
	p := Parameters{Ints: map[uint64]uint64{}, Texts: map[uint64]string{}}
	n := d.Varint()
	if n > maxParameters {
		d.fail("parameters")
		return p
	}
	for range n {
		if t := d.Varint(); t%2 == 0 {
			p.Ints[t] = d.Varint()
		} else {
			p.Texts[t] = string(d.Bytes())
		}
	}
	return p
}

// Namespace is the tuple by which tracks are grouped.
type Namespace []string

// HasPrefix reports whether ns begins with the fields of prefix.
func (ns Namespace) HasPrefix(prefix Namespace) bool {
	if len(prefix) > len(ns) {
		return false
	}
	for i, f := range prefix {
		if ns[i] != f {
			return false
		}
	}
	return true
}

// Equal reports whether both are the same tuple.
func (ns Namespace) Equal(other Namespace) bool {
	return len(ns) == len(other) && ns.HasPrefix(other)
}

// Encoder builds the body of a message.
type Encoder []byte

// Varint adds an integer below 2^62.
func (e Encoder) Varint(v uint64) Encoder { return quicvarint.Append(e, v) }

// Byte adds a byte.
func (e Encoder) Byte(b byte) Encoder { return append(e, b) }

// Text adds a length and the bytes of s.
func (e Encoder) Text(s string) Encoder { return append(e.Varint(uint64(len(s))), s...) }

// Namespace adds a tuple.
func (e Encoder) Namespace(ns Namespace) Encoder {
	e = e.Varint(uint64(len(ns)))
	for _, f := range ns {
		e = e.Text(f)
	}
	return e
}

// maxReason bounds a reason phrase, in bytes (section 1.4.3).
const maxReason = 1024

// Reason adds a reason phrase, cut to its bound.
func (e Encoder) Reason(s string) Encoder { return e.Text(s[:min(len(s), maxReason)]) }
