// Package recording encodes what an edge records of requests so that another
// configuration can be tried on them: who asked for what, and what the edge decided.
// Never bodies, queries, headers or credentials.
//
// A Block is what one edge has recorded in some seconds. Its texts stand in it once,
// so that a request takes some 35 bytes, 16 of which are its id.
package recording

import (
	"encoding/binary"
	"math"

	"sluice.dev/sluice/filters/host/wire"
)

// Request is what is recorded of one request.
type Request struct {
	ID       [16]byte // zero: not known
	Time     int64    // of its first byte, in unix milliseconds
	Listener string   // empty: gateway
	Method   string
	Host     string
	// Path has no query; empty: it is not recorded. What is stored has the sum of each
	// segment in place of it, see Sums.
	Path  string
	Route string // that Envoy matched, without its revision
	// Account, Credential and Scopes are the caller's whom the edge knew, a key's or a
	// token's id among them; empty: nobody known. Where a route lets nobody in, Credential
	// may say what a caller whom nobody knows presented: see authorize.Presented.
	Account    string
	Credential string
	Scopes     string // names joined by commas
	Code       string // with which the edge filter refused it; empty: it did not
	Client     string // address, without a port
	Status     uint16 // 0: the client was gone before there was one
	In, Out    uint64 // bytes of the bodies
}

// Failed reports whether the request has a status of 400 or more, or none.
func (r *Request) Failed() bool { return r.Status == 0 || r.Status >= 400 }

// texts are the texts of a request, in the order of the encoding.
func (r *Request) texts() [10]*string {
	return [10]*string{&r.Listener, &r.Method, &r.Host, &r.Path, &r.Route, &r.Account, &r.Credential, &r.Scopes, &r.Code, &r.Client}
}

// Block is what an edge has recorded since its last one.
type Block struct {
	// Seen is how many requests the block is a sample of: those that did not fail, and
	// those that did. They are as many as Requests unless it is one.
	Seen [2]uint64
	// Lost is how many more there were before, in blocks that nobody took.
	Lost     uint64
	Requests []Request
}

// Bounds of a block.
const (
	MaxRequests = 4000
	MaxText     = 1024
	MaxBytes    = 1 << 20
)

// version opens a block.
const version = 1

// Append appends the encoding of b, which has at most MaxRequests with texts of at most
// MaxText bytes.
func (b Block) Append(dst []byte) []byte {
	numbers, texts := map[string]uint64{}, []string{}
	for i := range b.Requests {
		for _, t := range b.Requests[i].texts() {
			if _, known := numbers[*t]; !known {
				numbers[*t] = uint64(len(texts))
				texts = append(texts, *t)
			}
		}
	}
	dst = append(dst, version)
	for _, n := range []uint64{b.Seen[0], b.Seen[1], b.Lost, uint64(len(texts))} {
		dst = binary.AppendUvarint(dst, n)
	}
	for _, t := range texts {
		dst = append(binary.AppendUvarint(dst, uint64(len(t))), t...)
	}
	dst = binary.AppendUvarint(dst, uint64(len(b.Requests)))
	last := int64(0)
	for i := range b.Requests {
		r := &b.Requests[i]
		dst = append(dst, r.ID[:]...)
		dst = binary.AppendVarint(dst, r.Time-last)
		last = r.Time
		for _, t := range r.texts() {
			dst = binary.AppendUvarint(dst, numbers[*t])
		}
		for _, n := range []uint64{uint64(r.Status), r.In, r.Out} {
			dst = binary.AppendUvarint(dst, n)
		}
	}
	return dst
}

// leastRequest is how few bytes a request takes: its id, and a byte for each number.
const leastRequest = 16 + 1 + 10 + 3

// Parse reads what Append wrote; ok is false for anything else. It takes time linear in
// raw, of MaxBytes at most, and memory of up to sixteen times that: texts are shared.
func Parse(raw []byte) (b Block, ok bool) {
	if len(raw) > MaxBytes {
		return b, false
	}
	r := wire.NewReader(raw)
	if r.Byte() != version {
		return b, false
	}
	b.Seen[0], b.Seen[1], b.Lost = r.Number(math.MaxInt64), r.Number(math.MaxInt64), r.Number(math.MaxInt64)
	texts := make([]string, r.Count(10*MaxRequests))
	for i := range texts {
		texts[i] = r.Text(MaxText)
	}
	b.Requests = make([]Request, r.CountOf(MaxRequests, leastRequest))
	last := int64(0)
	for i := range b.Requests {
		one := &b.Requests[i]
		copy(one.ID[:], r.Bytes(16))
		zigzag := r.Number(math.MaxUint64)
		last += int64(zigzag>>1) ^ -int64(zigzag&1)
		one.Time = last
		for _, t := range one.texts() {
			if n := r.Number(math.MaxUint32); n < uint64(len(texts)) {
				*t = texts[n]
			} else {
				r.Fail()
			}
		}
		one.Status, one.In, one.Out = uint16(r.Number(999)), r.Number(math.MaxInt64), r.Number(math.MaxInt64)
	}
	if !r.Done() {
		return Block{}, false
	}
	return b, true
}
