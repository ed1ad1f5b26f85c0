package fragments

import (
	"bytes"
	"encoding/binary"
)

// Places in a tkhd box, by its version (ISO/IEC 14496-12, 8.3.2), and the length of its
// matrix, in bytes.
var (
	trackIDAt = [2]int{20, 28}
	matrixAt  = [2]int{48, 60}
)

const matrixSize = 36

// matrices are how the pictures of tracks are turned, by the tracks' numbers, read from a
// moov box as it stands in the file: a telephone that is held upright writes it down and
// turns no picture. The library that reads the other boxes passes over it. It takes time
// linear in the boxes of two levels.
func matrices(moov []byte) map[uint32][]byte {
	found := map[uint32][]byte{}
	inside(moov, "trak", func(trak []byte) {
		inside(trak, "tkhd", func(tkhd []byte) {
			v := tkhd[headerSize]
			if v <= 1 && len(tkhd) >= matrixAt[v]+matrixSize {
				found[binary.BigEndian.Uint32(tkhd[trackIDAt[v]:])] = bytes.Clone(tkhd[matrixAt[v]:][:matrixSize])
			}
		})
	})
	return found
}

// headerSize is that of a box of less than 4 GiB.
const headerSize = 8

// inside visits the boxes of a kind that stand in box, as far as they fit into each other.
func inside(box []byte, kind string, visit func([]byte)) {
	for rest := box[min(headerSize, len(box)):]; len(rest) > headerSize; {
		n := binary.BigEndian.Uint32(rest)
		if n <= headerSize || uint64(n) > uint64(len(rest)) {
			return
		}
		if string(rest[4:headerSize]) == kind {
			visit(rest[:n])
		}
		rest = rest[n:]
	}
}

// turn writes a matrix into the one track of an initialisation segment; nil: it stays as
// it is.
func turn(segment, matrix []byte) {
	if at := bytes.Index(segment, []byte("tkhd")) - 4; matrix != nil && at >= 0 && len(segment) >= at+matrixAt[0]+matrixSize {
		copy(segment[at+matrixAt[0]:], matrix)
	}
}
