package aes67

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"net/netip"
)

// Announcement is a packet of SAP (RFC 2974) about one flow.
type Announcement struct {
	Origin netip.Addr // who announces it
	Hash   uint16     // of this announcement, among its origin's
	Gone   bool       // the flow is deleted
	SDP    string     // empty where Gone
}

// sdpType precedes the payload of a packet, where it is said.
const sdpType = "application/sdp\x00"

// errSAP says that a packet is none that this package reads.
var errSAP = errors.New("no SAP packet of version 1 with plain SDP")

// ParseSAP reads a packet. One that is encrypted or compressed is refused: no device
// of AES67 sends such. It takes time and memory linear in b, a datagram.
func ParseSAP(b []byte) (Announcement, error) {
	if len(b) < 8 || b[0]>>5 != 1 || b[0]&0b11 != 0 {
		return Announcement{}, errSAP
	}
	a := Announcement{Gone: b[0]&0b100 != 0, Hash: binary.BigEndian.Uint16(b[2:])}
	rest, address := b[4:], 4
	if b[0]&0b10000 != 0 {
		address = 16
	}
	authentication := 4 * int(b[1])
	if len(rest) < address+authentication {
		return Announcement{}, errSAP
	}
	a.Origin, _ = netip.AddrFromSlice(rest[:address])
	rest = rest[address+authentication:]
	switch {
	case bytes.HasPrefix(rest, []byte(sdpType)):
		rest = rest[len(sdpType):]
	case bytes.HasPrefix(rest, []byte("v=0")), a.Gone:
	default:
		return Announcement{}, errSAP
	}
	if len(rest) > MaxSDP {
		return Announcement{}, errSAP
	}
	if !a.Gone {
		a.SDP = string(rest)
	}
	return a, nil
}

// Announce makes the packet that announces, or deletes, the flow of a description.
// origin is of IPv4.
func Announce(origin netip.Addr, description string, gone bool) []byte {
	h := fnv.New32a()
	_, _ = h.Write([]byte(description)) // never fails
	sum := h.Sum32()
	hash := uint16(sum>>16) ^ uint16(sum)
	if hash == 0 { // which says that there is none
		hash = 1
	}
	first := byte(1 << 5)
	if gone {
		first |= 0b100
	}
	b := append([]byte{first, 0, byte(hash >> 8), byte(hash)}, origin.AsSlice()...)
	return append(append(b, sdpType...), description...)
}
