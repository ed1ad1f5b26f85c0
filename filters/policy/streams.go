package policy

import "encoding/binary"

// Stream is what an edge does about the requests of a route that last as long as both
// ends like.
type Stream uint8

// What is done about them.
const (
	Unwatched Stream = iota
	// Watched streams have a place each among those that their account may have open, are
	// metered while they are open, and end when their credential does.
	Watched
	// Upgrades is Watched, of a route whose requests become WebSocket connections. Their
	// credential may stand in Sec-WebSocket-Protocol.
	Upgrades
)

// watches reports whether p says anything that encodeStreams writes.
func (p *Policy) watches() bool {
	for i := range p.Routes {
		if p.Routes[i].Stream != Unwatched {
			return true
		}
	}
	return false
}

// encodeStreams appends the routes that are watched, each by how many routes stand between
// it and the one before, and the connections of every plan's limits.
func (p *Policy) encodeStreams(b []byte) []byte {
	var watched []int
	for i := range p.Routes {
		if p.Routes[i].Stream != Unwatched {
			watched = append(watched, i)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(watched)))
	next := 0
	for _, i := range watched {
		b = append(binary.AppendUvarint(b, uint64(i-next)), byte(p.Routes[i].Stream))
		next = i + 1
	}
	for i := range p.Plans {
		for _, l := range p.Plans[i].Limits {
			b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(l.Connections)), uint64(l.ConnectionsPerKey))
		}
	}
	return b
}

// streamSize is the fewest bytes that a watched route takes.
const streamSize = 2

// streams reads what encodeStreams wrote into p, whose routes and plans have been read; ok
// is false when there is none of it, or it names a route that is not there.
func (r *reader) streams(p *Policy) (ok bool) {
	n := r.CountOf(MaxRoutes, streamSize)
	next := 0
	for range n {
		at := next + int(r.Number(MaxRoutes))
		s := Stream(r.Byte())
		if r.Failed() || at >= len(p.Routes) || s == Unwatched || s > Upgrades {
			return false
		}
		p.Routes[at].Stream, next = s, at+1
	}
	for i := range p.Plans {
		for j := range p.Plans[i].Limits {
			l := &p.Plans[i].Limits[j]
			l.Connections, l.ConnectionsPerKey = uint32(r.Number(1<<31)), uint32(r.Number(1<<31))
		}
	}
	return n > 0
}
