package fragments

import (
	"errors"
	"io"
	"math"
	"sort"
)

// Film is a file as players of segments want it: each track as a file of its own.
type Film struct {
	Tracks []Cut `json:"tracks"`
}

// Cut is a track as a file of its own: an initialisation segment, an index (a sidx box)
// and fragments. Most of its bytes stand in the film that it was cut from.
type Cut struct {
	Track
	Skip     uint64 `json:"skip"`     // ticks before the presentation begins
	Duration uint64 `json:"duration"` // ticks, of what is presented
	Init     int64  `json:"init"`     // bytes of the initialisation segment
	Index    int64  `json:"index"`    // bytes of the index, which follows it
	Longest  uint64 `json:"longest"`  // ticks, of a fragment
	Peak     uint32 `json:"peak"`     // bits a second, of the densest fragment
	Own      []byte `json:"own"`      // the bytes that do not stand in the film, in their order
	Parts    []Part `json:"parts"`
}

// Part is a stretch of a Cut: the next N bytes of its own, or those at From in the film.
type Part struct {
	N    int64 `json:"n"`
	From int64 `json:"from"` // -1: its own
}

// errCut says that a Cut is not what its film can give.
var errCut = errors.New("a cut that does not fit its film")

// Check fails unless every track of f can be read from a film of size bytes. It is for
// who has f from a process that strangers' bytes may have taken over.
func (f Film) Check(size int64) error {
	borrowed := int64(0)
	for _, c := range f.Tracks {
		own, total := int64(0), int64(0)
		for _, p := range c.Parts {
			if p.N < 0 || p.N > math.MaxInt64-total || p.From >= 0 && (p.From > size || p.N > size-p.From) || p.From < -1 {
				return errCut
			}
			total += p.N
			if p.From < 0 {
				own += p.N
			} else if borrowed += p.N; borrowed > most*size {
				return errCut
			}
		}
		if own != int64(len(c.Own)) || c.Timescale == 0 || c.Init < 0 || c.Index < 0 || c.Init+c.Index > total || c.Kind != Video && c.Kind != Audio {
			return errCut
		}
	}
	return nil
}

// Reader reads a Cut. One goroutine may use it at a time.
type Reader struct {
	film io.ReaderAt
	cut  Cut
	ends []int64 // of each part, in the cut
	owns []int64 // where each part of its own begins in Own
	pos  int64
}

// NewReader reads c, which Check has passed, with the bytes of its film. It takes time
// linear in the parts.
func NewReader(c Cut, film io.ReaderAt) *Reader {
	r := &Reader{film: film, cut: c, ends: make([]int64, len(c.Parts)), owns: make([]int64, len(c.Parts))}
	end, own := int64(0), int64(0)
	for i, p := range c.Parts {
		r.owns[i] = own
		if p.From < 0 {
			own += p.N
		}
		end += p.N
		r.ends[i] = end
	}
	return r
}

// Size is the length of the cut in bytes.
func (r *Reader) Size() int64 {
	if len(r.ends) == 0 {
		return 0
	}
	return r.ends[len(r.ends)-1]
}

// Read reads from the present position, to the end of a part at most.
func (r *Reader) Read(p []byte) (n int, err error) {
	i := sort.Search(len(r.ends), func(i int) bool { return r.ends[i] > r.pos })
	if i == len(r.ends) {
		return 0, io.EOF
	}
	part, left := r.cut.Parts[i], r.ends[i]-r.pos
	within := part.N - left
	p = p[:min(int64(len(p)), left)]
	if part.From < 0 {
		n = copy(p, r.cut.Own[r.owns[i]+within:])
	} else if n, err = r.film.ReadAt(p, part.From+within); n > 0 || errors.Is(err, io.EOF) && len(p) > 0 {
		if n == 0 {
			return 0, io.ErrUnexpectedEOF
		}
		err = nil
	}
	r.pos += int64(n)
	return n, err
}

// Seek moves the position, as io.Seeker says.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.pos
	case io.SeekEnd:
		offset += r.Size()
	}
	if offset < 0 {
		return 0, errCut
	}
	r.pos = offset
	return offset, nil
}
