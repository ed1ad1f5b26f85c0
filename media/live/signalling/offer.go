package signalling

import (
	"bytes"
	"slices"
	"strings"
)

// Codecs that players understand, by the names that session descriptions give them.
var (
	video = []string{"H264", "H265", "VP8", "VP9", "AV1"}
	audio = []string{"OPUS"}
)

// needs are the codecs of each kind of part.
var needs = map[string][]string{"video": video, "audio": audio}

// Understood reports whether a publisher's offer (SDP, RFC 8866) has, in each of
// its parts with pictures or sound, a codec that players understand. What is no
// offer at all is left for the engine to refuse. It takes time linear in offer, and
// memory of at most four times its length.
func Understood(offer []byte) bool {
	var known []string // codecs of the present part; nil: it needs none
	found := true
	for line := range bytes.Lines(offer) {
		text := strings.TrimRight(string(line), "\r\n")
		if kind, ok := strings.CutPrefix(text, "m="); ok {
			if !found {
				return false
			}
			known = needs[firstWord(kind)]
			found = known == nil
		}
		if mapping, ok := strings.CutPrefix(text, "a=rtpmap:"); ok {
			_, codec, _ := strings.Cut(mapping, " ")
			name, _, _ := strings.Cut(codec, "/")
			found = found || slices.Contains(known, strings.ToUpper(name))
		}
	}
	return found
}

// firstWord is text up to its first space.
func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}
