package playback

import (
	"bytes"
	"errors"
	"net/url"
	"regexp"

	"github.com/bluenviron/gohlslib/v2/pkg/playlist"
)

// uriAttribute is where tags of a playlist name files (RFC 8216, 4.3).
var uriAttribute = regexp.MustCompile(`URI="([^"]*)"`)

// maxLine bounds a line of a playlist, in bytes.
const maxLine = 16 << 10

// maxSigned bounds a playlist with the token in every line, in bytes.
const maxSigned = 4 * maxPlaylist

// errLong says that a playlist has too many lines.
var errLong = errors.New("a playlist with more or longer lines than are handed on")

// Sign appends the token to every address in an HLS playlist, so that players
// that know nothing of tokens send it with each request. Without a token the
// playlist is returned as it is. Each address costs the length of the token more: a
// playlist that becomes longer than 4 MiB, or has a line of more than 16 KiB, is refused
// at that point. So time is linear in the playlist, and what is allocated at most 64 MiB.
func Sign(list []byte, token string) ([]byte, error) {
	if token == "" {
		return list, nil
	}
	var out bytes.Buffer
	for line := range bytes.Lines(list) {
		if len(line) > maxLine {
			return nil, errLong
		}
		text := bytes.TrimRight(line, "\r\n")
		switch {
		case len(text) == 0:
		case text[0] == '#':
			text = uriAttribute.ReplaceAllFunc(text, func(m []byte) []byte {
				return []byte(`URI="` + withToken(string(m[5:len(m)-1]), token) + `"`)
			})
		default:
			text = []byte(withToken(string(text), token))
		}
		out.Write(text)
		out.WriteByte('\n')
		if out.Len() > maxSigned {
			return nil, errLong
		}
	}
	return out.Bytes(), nil
}

// whole leaves out of an HLS playlist what is said of parts of segments, and the gaps that
// the engine puts before the first segment. Another playlist is returned as it is. It takes
// time and memory linear in the playlist.
func whole(raw []byte) ([]byte, error) {
	if !bytes.Contains(raw, []byte("\n#EXT-X-PART-INF:")) {
		return raw, nil
	}
	var list playlist.Media
	if err := list.Unmarshal(raw); err != nil {
		return nil, err
	}
	list.ServerControl, list.PartInf, list.Parts, list.PreloadHint = nil, nil, nil, nil
	for len(list.Segments) > 0 && list.Segments[0].Gap {
		list.Segments = list.Segments[1:]
		list.MediaSequence++
	}
	for _, s := range list.Segments {
		s.Parts = nil
	}
	return list.Marshal()
}

// withToken adds the token to a relative address. One that leads elsewhere is
// left alone: its server must not learn the token.
func withToken(address, token string) string {
	u, err := url.Parse(address)
	if err != nil || u.IsAbs() || u.Host != "" {
		return address
	}
	q := u.Query()
	q.Set("token", token)
	u.RawQuery = q.Encode()
	return u.String()
}
