package relay

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
)

// magic begins every sealed file, and names the format.
const magic = "SLST1\n"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errDamaged = errors.New("its checksum is wrong")

// writeSealed replaces a file that only its owner may read, whole or not at all,
// also when the machine stops. What it holds is body between magic and checksum.
func writeSealed(name string, body []byte) error {
	f, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	sum := binary.LittleEndian.AppendUint32(nil, crc32.Checksum(body, castagnoli))
	for _, part := range [][]byte{[]byte(magic), body, sum} {
		if _, err := f.Write(part); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return replace(name+".new", name)
}

// replace renames a file and makes that last.
func replace(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// readSealed returns the body of a file; nil when there is no file.
func readSealed(name string) ([]byte, error) {
	raw, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	body, ok := bytes.CutPrefix(raw, []byte(magic))
	if !ok || len(body) < 4 {
		return nil, errDamaged
	}
	body, sum := body[:len(body)-4], binary.LittleEndian.Uint32(body[len(body)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, errDamaged
	}
	return body, nil
}

// putAside keeps a damaged file for whoever wants to look at it.
func putAside(name string) { _ = os.Rename(name, name+".damaged") }

// appendFrame appends a part with its length before it.
func appendFrame(dst, part []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, uint32(len(part))), part...)
}

// frames yields the parts, and what is left after each. A part that is cut short
// is nil, and the last.
func frames(b []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		for len(b) > 0 {
			if len(b) < 4 {
				yield(nil, b)
				return
			}
			n := int(binary.LittleEndian.Uint32(b))
			if n > len(b)-4 {
				yield(nil, b)
				return
			}
			part := b[4 : 4+n : 4+n]
			b = b[4+n:]
			if !yield(part, b) {
				return
			}
		}
	}
}
