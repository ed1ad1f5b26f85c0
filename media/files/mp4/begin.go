package mp4

import (
	"bytes"
	"errors"
	"io"
)

// Begin returns what r reads. It fails with ErrNotMP4 before it hands on a byte when
// the first eight are not those of a file that Parse may accept, so that nobody
// stores, or sends, the rest of one that it will not. Its memory is eight bytes.
func Begin(r io.Reader) io.Reader { return &begin{rest: r} }

type begin struct {
	rest  io.Reader
	begun bool
}

// Read implements io.Reader.
func (b *begin) Read(p []byte) (int, error) {
	if !b.begun {
		head := make([]byte, 8)
		_, err := io.ReadFull(b.rest, head)
		if err == nil && string(head[4:]) != "ftyp" || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = ErrNotMP4
		}
		if err != nil {
			return 0, err
		}
		b.begun, b.rest = true, io.MultiReader(bytes.NewReader(head), b.rest)
	}
	return b.rest.Read(p)
}
