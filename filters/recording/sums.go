package recording

import (
	"crypto/hmac"
	"crypto/sha256"
	"strings"
)

// A stored path is the sums of its segments, of sumSize bytes each: enough to tell
// whether a segment is a text that somebody names, with one mistake in four thousand
// million, and nothing that can be read. Whoever has not the key cannot try names.
const (
	sumSize = 4
	// maxSegments is how many segments of a path are told apart.
	maxSegments = 32
	// maxPath is the length from which on Envoy's line may not have all of a path.
	maxPath = 1024
)

// Sum is the sum of a segment; that of an empty one, as behind a last slash, is zero.
type Sum [sumSize]byte

// Summer makes sums with a key.
type Summer struct {
	key    []byte
	recent map[string]Sum
}

// maxRecent bounds what a Summer remembers.
const maxRecent = 10_000

// NewSummer returns a Summer, which one goroutine may use.
func NewSummer(key []byte) *Summer { return &Summer{key, map[string]Sum{}} }

// Segment is the sum of one segment.
func (s *Summer) Segment(text string) (sum Sum) {
	if text == "" {
		return sum
	}
	if known, ok := s.recent[text]; ok {
		return known
	}
	h := hmac.New(sha256.New, s.key)
	h.Write([]byte(text))
	copy(sum[:], h.Sum(nil))
	if sum == (Sum{}) {
		sum[0] = 1
	}
	if len(s.recent) < maxRecent {
		s.recent[text] = sum
	}
	return sum
}

// Path is what is stored of a path: empty for one that cannot be told apart from
// others, as it is too long or none at all.
func (s *Summer) Path(path string) string {
	if !strings.HasPrefix(path, "/") || len(path) >= maxPath || strings.Count(path, "/") > maxSegments {
		return ""
	}
	b := make([]byte, 0, sumSize*maxSegments)
	for segment := range strings.SplitSeq(path[1:], "/") {
		sum := s.Segment(segment)
		b = append(b, sum[:]...)
	}
	return string(b)
}

// Segments are the sums in a stored path; nil: it is not known.
func Segments(stored string) []Sum {
	if stored == "" || len(stored)%sumSize != 0 {
		return nil
	}
	list := make([]Sum, len(stored)/sumSize)
	for i := range list {
		copy(list[i][:], stored[i*sumSize:])
	}
	return list
}
