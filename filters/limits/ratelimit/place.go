package ratelimit

import "encoding/binary"

// Windows live in a fixed number of places, so that memory has a bound whatever
// the number of accounts and addresses. Each ID has a few places where it may
// be; when all of them are taken by others, the one with the fewest counted
// requests gives way, and its owner starts again from zero.

// Places is the number of places of one kind: about 25 MB when all are taken, 60 MB when
// all have a tail.
const Places = 1 << 16

// Probes is how many places an ID may use.
const Probes = 3

// PlaceKeyLen is the length of a shared-data key of a place.
const PlaceKeyLen = 4

// Kind keeps windows of accounts apart from those of addresses, so that a flood
// from many addresses never pushes out an account's.
type Kind byte

// The kinds of window.
const (
	Accounts  Kind = 'r'
	Addresses Kind = 'a'
)

// KindOf is the kind of the window of id.
func KindOf(id ID) Kind {
	if id[8] == 'a' {
		return Addresses
	}
	return Accounts
}

// Place is the shared-data key of the n-th place of id, n from 0 to Probes-1.
func Place(k Kind, id ID, n int) [PlaceKeyLen]byte {
	h := hash(id)
	at := uint32(h) + uint32(n)*(uint32(h>>32)|1)
	return [PlaceKeyLen]byte{byte(k), 0, byte(at >> 8), byte(at)}
}

// hash spreads an ID over the places (the finalizer of SplitMix64). Account and
// key numbers are random, addresses are not, which the mixing makes up for.
func hash(id ID) uint64 {
	h := binary.LittleEndian.Uint64(id[:]) ^ binary.LittleEndian.Uint64(id[8:])*0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
