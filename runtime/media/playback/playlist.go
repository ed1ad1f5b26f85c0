package playback

import (
	"bytes"
	"net/url"
	"regexp"
)

// uriAttribute is where tags of a playlist name files (RFC 8216, 4.3).
var uriAttribute = regexp.MustCompile(`URI="([^"]*)"`)

// sign appends the token to every address in an HLS playlist, so that players
// that know nothing of tokens send it with each request. Without a token the
// playlist is returned as it is.
func sign(playlist []byte, token string) []byte {
	if token == "" {
		return playlist
	}
	var out bytes.Buffer
	for line := range bytes.Lines(playlist) {
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
	}
	return out.Bytes()
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
