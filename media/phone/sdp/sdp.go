// Package sdp reads and writes the session descriptions of telephone calls (RFC 8866) as
// offers and answers (RFC 3264): one stream of sound as Opus or G.711, with the keys that
// are pressed (RFC 4733).
package sdp

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	pion "github.com/pion/sdp/v3"
)

// Codec is one that calls are taken with.
type Codec struct {
	Name string // as SDP writes it, in lower case
	Rate int    // of the RTP clock, in Hz
	Type uint8  // payload type, of whoever offered
}

// The names of the codecs.
const (
	Opus = "opus"
	PCMU = "pcmu"
	PCMA = "pcma"
)

// offered are the codecs in the order in which we like them, with the payload types
// that we give them.
var offered = []Codec{{Opus, 48000, 111}, {PCMU, 8000, 0}, {PCMA, 8000, 8}}

// Session is what one side says, or what both have agreed upon.
type Session struct {
	Addr  netip.AddrPort // where that side takes RTP
	Codec Codec          // the one that is used
	// Keys is the payload type of telephone events; 0: they are not sent.
	Keys     uint8
	keysRate int

	direction string   // as that side has it; empty: sendrecv
	refusals  []string // m= lines that refuse each media; sound is the one at place
	place     int
}

// Hears reports whether that side wants to hear us: not while it holds the call.
func (s Session) Hears() bool { return s.direction != "sendonly" && s.direction != "inactive" }

// answers are the directions that answer others (RFC 3264, 6.1).
var answers = map[string]string{"sendonly": "recvonly", "recvonly": "sendonly", "inactive": "inactive"}

// maxMedia bounds the media of a description.
const maxMedia = 16

// MaxSize bounds a description, in bytes.
const MaxSize = 8 << 10

// The errors of Read.
var (
	ErrNoCodec = errors.New("neither Opus nor G.711 is offered")
	ErrForm    = errors.New("no description of a call")
)

// Read reads an offer, or an answer to ours, and takes the codec that it names first
// among those that we have. It takes time and memory linear in raw, which it refuses
// beyond MaxSize.
func Read(raw []byte) (s Session, err error) {
	if len(raw) > MaxSize {
		return s, ErrForm
	}
	var d pion.SessionDescription
	if err := d.UnmarshalString(string(raw)); err != nil {
		return s, fmt.Errorf("%w: %w", ErrForm, err)
	}
	if len(d.MediaDescriptions) > maxMedia {
		return s, ErrForm
	}
	for i, m := range d.MediaDescriptions {
		if m.MediaName.Media != "audio" || m.MediaName.Port.Value == 0 || strings.Join(m.MediaName.Protos, "/") != "RTP/AVP" {
			continue
		}
		if s.Addr, err = address(d, m); err != nil {
			return s, err
		}
		if !s.choose(m) {
			return s, ErrNoCodec
		}
		s.place, s.direction = i, direction(m.Attributes, direction(d.Attributes, ""))
		for _, other := range d.MediaDescriptions {
			s.refusals = append(s.refusals, refusal(other))
		}
		return s, nil
	}
	return s, ErrNoCodec
}

// address is where m is sent to: its own connection, else the session's.
func address(d pion.SessionDescription, m *pion.MediaDescription) (netip.AddrPort, error) {
	c := m.ConnectionInformation
	if c == nil {
		c = d.ConnectionInformation
	}
	if c == nil || c.Address == nil {
		return netip.AddrPort{}, fmt.Errorf("%w: it has no address", ErrForm)
	}
	addr, err := netip.ParseAddr(c.Address.Address)
	port := m.MediaName.Port.Value
	if err != nil || addr.IsMulticast() || port < 1 || port > 65535 {
		return netip.AddrPort{}, fmt.Errorf("%w: its address is none", ErrForm)
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(port)), nil
}

// direction is the one that attributes have, or usual.
func direction(attributes []pion.Attribute, usual string) string {
	for _, a := range attributes {
		switch a.Key {
		case "sendrecv", "sendonly", "recvonly", "inactive":
			return a.Key
		}
	}
	return usual
}

// refusal is the m= line that refuses m.
func refusal(m *pion.MediaDescription) string {
	return "m=" + m.MediaName.Media + " 0 " + strings.Join(m.MediaName.Protos, "/") + " " + strings.Join(m.MediaName.Formats, " ") + "\r\n"
}

// choose takes the first codec of m that we have, and its telephone events; false: it
// has none.
func (s *Session) choose(m *pion.MediaDescription) bool {
	named := map[uint8]Codec{0: {PCMU, 8000, 0}, 8: {PCMA, 8000, 8}}
	for _, a := range m.Attributes {
		if a.Key != "rtpmap" {
			continue
		}
		if c, ok := mapping(a.Value); ok {
			named[c.Type] = c
		}
	}
	var keys []Codec
	for _, text := range m.MediaName.Formats {
		n, err := strconv.ParseUint(text, 10, 7)
		c, known := named[uint8(n)]
		switch {
		case err != nil || !known:
		case c.Name == "telephone-event":
			keys = append(keys, c)
		case s.Codec.Name == "" && (c.Name == Opus && c.Rate == 48000 || (c.Name == PCMU || c.Name == PCMA) && c.Rate == 8000):
			s.Codec = c
		}
	}
	for _, k := range keys {
		if k.Rate == s.Codec.Rate || s.Keys == 0 {
			s.Keys, s.keysRate = k.Type, k.Rate
		}
	}
	return s.Codec.Name != ""
}

// mapping reads the value of an rtpmap attribute, such as "111 opus/48000/2".
func mapping(text string) (c Codec, ok bool) {
	kind, encoding, found := strings.Cut(text, " ")
	n, err := strconv.ParseUint(kind, 10, 7)
	parts := strings.Split(strings.TrimSpace(encoding), "/")
	if !found || err != nil || len(parts) < 2 || len(parts) > 3 {
		return c, false
	}
	rate, err := strconv.Atoi(parts[1])
	return Codec{strings.ToLower(parts[0]), rate, uint8(n)}, err == nil
}

// KeysRate is the clock of the telephone events, in Hz.
func (s Session) KeysRate() int { return max(s.keysRate, 8000) }

// Answer writes what we say to an offer: its codec and its keys, at our address.
func (s Session) Answer(own netip.AddrPort) []byte {
	return s.write(own, []Codec{s.Codec}, s.Keys, s.KeysRate())
}

// Offer writes what we say first.
func Offer(own netip.AddrPort) []byte { return Session{}.write(own, offered, 101, 8000) }

// write writes a description that answers s, where that is one: with as many media, of
// which all but its sound are refused (RFC 3264, 6).
func (s Session) write(own netip.AddrPort, codecs []Codec, keys uint8, keysRate int) []byte {
	var b strings.Builder
	family := "IP4"
	if own.Addr().Is6() {
		family = "IP6"
	}
	fmt.Fprintf(&b, "v=0\r\no=- %d 1 IN %s %s\r\ns=sluice\r\nc=IN %s %s\r\nt=0 0\r\n", own.Port(), family, own.Addr(), family, own.Addr())
	for _, other := range s.refusals[:min(s.place, len(s.refusals))] {
		b.WriteString(other)
	}
	fmt.Fprintf(&b, "m=audio %d RTP/AVP", own.Port())
	for _, c := range codecs {
		fmt.Fprintf(&b, " %d", c.Type)
	}
	if keys != 0 {
		fmt.Fprintf(&b, " %d", keys)
	}
	b.WriteString("\r\n")
	for _, c := range codecs {
		encoding := strings.ToUpper(c.Name) + "/" + strconv.Itoa(c.Rate)
		if c.Name == Opus {
			encoding = "opus/48000/2"
		}
		fmt.Fprintf(&b, "a=rtpmap:%d %s\r\n", c.Type, encoding)
		if c.Name == Opus {
			fmt.Fprintf(&b, "a=fmtp:%d stereo=0;useinbandfec=0\r\n", c.Type)
		}
	}
	if keys != 0 {
		fmt.Fprintf(&b, "a=rtpmap:%d telephone-event/%d\r\na=fmtp:%d 0-16\r\n", keys, keysRate, keys)
	}
	b.WriteString("a=ptime:20\r\na=" + cmp.Or(answers[s.direction], "sendrecv") + "\r\n")
	for _, other := range s.refusals[min(s.place+1, len(s.refusals)):] {
		b.WriteString(other)
	}
	return []byte(b.String())
}
