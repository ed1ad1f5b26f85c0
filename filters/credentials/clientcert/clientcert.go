// Package clientcert reads what Envoy says of the certificate with which a client has
// proved who it is, and names the records by which edges know such certificates.
//
// Envoy, that is BoringSSL, has verified the certificate, or the connection would not
// be there: its chain, its time, and that it is for clients. It writes what the
// certificate says into the header Header, by Format, before the edge filter runs.
package clientcert

import (
	"crypto/sha256"
	"strconv"
	"strings"

	"sluice.dev/sluice/filters/credentials/keytable"
)

// Header is the request header in which the edge filter finds the certificate. What
// clients send under this name is dropped, and products do not get it.
const Header = "x-sluice-peer"

// Format is how Envoy writes Header, see Memo.Read. A certificate's own texts may have
// the separator in them: then there are too many fields, and nobody is let in.
const Format = "%DOWNSTREAM_PEER_FINGERPRINT_256%|%DOWNSTREAM_PEER_SERIAL%|%DOWNSTREAM_PEER_CERT_V_END(%s)%|" +
	"%DOWNSTREAM_PEER_URI_SAN%|%DOWNSTREAM_PEER_DNS_SAN%|%DOWNSTREAM_PEER_EMAIL_SAN%|%DOWNSTREAM_PEER_ISSUER%|%DOWNSTREAM_PEER_SUBJECT%"

const (
	fields = 8
	// maxText bounds the header that is read: a certificate with more in it names
	// nobody.
	maxText = 16 << 10
	// MaxName bounds one name, in bytes.
	MaxName = 255
)

// Kind says which part of a certificate names its holder.
type Kind string

// The kinds, in the order in which they are looked for.
const (
	SHA256 Kind = "sha256" // of the whole certificate, in hexadecimal
	URI    Kind = "uri"    // subject alternative name, such as a SPIFFE id
	DNS    Kind = "dns"    // subject alternative name, in lower case
	Email  Kind = "email"  // subject alternative name
	CN     Kind = "cn"     // the subject's common name
)

// Kinds are all of them, in the order in which they are looked for.
func Kinds() []Kind { return []Kind{SHA256, URI, DNS, Email, CN} }

// Certificate is what an edge goes by.
type Certificate struct {
	// Present is false when the client has shown none.
	Present bool
	Expires int64 // unix seconds
	// Names are the tags of the records that may know it, see Hash, in the order of
	// Kinds.
	Names []keytable.Tag
	// Revoked is the tag of the record by which it may be revoked, see IsRevoked.
	Revoked keytable.Tag

	issuer string
	text   string
}

// Memo remembers the certificates that were read last: the same few clients make most
// requests. The zero Memo is empty and ready.
type Memo struct{ slots []Certificate }

const slots = 64

// Read reads what Envoy has written by Format; ok is false when it is anything else.
// It takes time linear in text, of which it looks at no more than maxText bytes, keeps
// text until another takes its place, and allocates no more than text again and 1 KiB.
func (m *Memo) Read(text string) (c Certificate, ok bool) {
	if len(text) < fields || len(text) > maxText {
		return c, text == absent
	}
	if m.slots == nil {
		m.slots = make([]Certificate, slots)
	}
	s := &m.slots[(int(text[0])*7+int(text[1])*61+int(text[2]))%slots]
	if s.text == text {
		return *s, true
	}
	if c, ok = parse(strings.Clone(text)); ok {
		*s = c
	}
	return c, ok
}

// absent is what Format gives of a connection without a certificate.
const absent = "|||||||"

// parse reads a certificate that is there.
func parse(text string) (c Certificate, ok bool) {
	var f [fields]string
	rest := text
	for i := range fields - 1 {
		if f[i], rest, ok = strings.Cut(rest, "|"); !ok {
			return c, false
		}
	}
	f[fields-1] = rest
	expires, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil || len(f[0]) != 2*sha256.Size || f[1] == "" || strings.IndexByte(rest, '|') >= 0 {
		return c, false
	}
	c = Certificate{Present: true, Expires: expires, Revoked: TagOfRevoked(f[1]), issuer: f[6], text: text}
	names := [...]string{f[0], only(f[3]), strings.ToLower(only(f[4])), only(f[5]), commonName(f[7])}
	for i, kind := range Kinds() {
		if Usable(names[i]) {
			c.Names = append(c.Names, keytable.TagOfKey(Hash(kind, names[i])))
		}
	}
	return c, true
}

// only is the one name in a list that Envoy has joined by commas; "" when there are
// several: one name with a comma in it would look like two, of which the second is
// somebody else's.
func only(list string) string {
	if strings.IndexByte(list, ',') >= 0 {
		return ""
	}
	return list
}

// commonName is the one common name of a subject in the form of RFC 2253, as BoringSSL
// writes it; "" when there is none, or several, or one with characters that are escaped
// there.
func commonName(subject string) (name string) {
	for start, i := 0, 0; i <= len(subject); i++ {
		if i < len(subject) && subject[i] == '\\' {
			i++ // what is escaped ends nothing
			continue
		}
		if i < len(subject) && subject[i] != ',' && subject[i] != '+' {
			continue
		}
		if part := subject[start:i]; strings.HasPrefix(part, "CN=") {
			if name != "" {
				return ""
			}
			name = part[len("CN="):]
		}
		start = i + 1
	}
	return name
}

// Usable reports whether a certificate's name is one by which it can be known: up to
// MaxName printable ASCII characters, without those that stand between names or mark
// what is escaped.
func Usable(name string) bool {
	if name == "" || len(name) > MaxName || name[0] == ' ' || name[0] == '#' || name[len(name)-1] == ' ' {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c < ' ' || c >= 0x7f:
			return false
		case c == ',' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '|':
			return false
		}
	}
	return true
}

// Hash is what is stored of the certificate that is known by a name: in the place of
// the SHA-256 of a key's text. The word in front keeps it apart from those, and from
// the tags of all other records.
func Hash(kind Kind, name string) [sha256.Size]byte {
	return sha256.Sum256([]byte("certificate\x00" + string(kind) + "\x00" + name))
}
