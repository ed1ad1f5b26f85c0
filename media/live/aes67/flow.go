// Package aes67 receives and sends sound over RTP as AES67 has it, which Dante
// devices in AES67 mode speak: linear PCM of 48 kHz, described by SDP (RFC 8866),
// announced by SAP (RFC 2974). It has no clock of IEEE 1588 of its own: what comes is
// played by this machine's clock, from a Buffer that levels out the difference.
package aes67

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/pion/sdp/v3"
)

// Rate is how many frames of a flow are a second: the one rate that every device of
// AES67 has.
const Rate = 48000

// Bounds of a flow.
const (
	MaxChannels = 64
	MaxSDP      = 8 << 10 // bytes of a description
	maxName     = 100     // bytes of its name that are kept
	maxPayload  = 1440    // bytes of sound in a packet (AES67, 7.1.1)
)

// Flow is one flow of sound, as its description has it.
type Flow struct {
	Name     string     `json:"name"`
	Address  netip.Addr `json:"address"` // IPv4: the group or, of a unicast flow, the receiver
	Port     int        `json:"port"`    // UDP
	TTL      int        `json:"ttl"`     // of packets to a group
	Format   string     `json:"format"`  // L24 or L16
	Channels int        `json:"channels"`
	Payload  uint8      `json:"payload_type"`
	PTime    float64    `json:"ptime"` // of a packet, in milliseconds
	// Source is the only sender that is listened to (RFC 4570). Zero: whoever sends.
	Source netip.Addr `json:"source,omitzero"`
	// Clock is what the sender's clock follows (RFC 7273), such as
	// ptp=IEEE1588-2008:00-1D-C1-FF-FE-12-34-56:0 or local. Empty: not said.
	Clock string `json:"clock,omitempty"`
	// Offset is the RTP timestamp at the clock's beginning: a=mediaclk:direct=.
	Offset uint32 `json:"-"`
}

// sampleBytes is how long a sample is, in bytes.
func (f Flow) sampleBytes() int {
	if f.Format == "L16" {
		return 2
	}
	return 3
}

// frames is how many frames a packet of the flow has.
func (f Flow) frames() int { return int(f.PTime*Rate/1000 + 0.5) }

// attributes gathers those of a media description, and of its session where it has
// none of the name.
func attribute(s *sdp.SessionDescription, m *sdp.MediaDescription, name string) string {
	if text, ok := m.Attribute(name); ok {
		return text
	}
	text, _ := s.Attribute(name)
	return text
}

// ParseSDP reads the description of a flow: its first audio of a format that AES67
// has. Errors say what is amiss, in words for whoever wrote it. It takes time and
// memory linear in text, of which MaxSDP bytes are read.
func ParseSDP(text string) (Flow, error) {
	if len(text) > MaxSDP {
		return Flow{}, fmt.Errorf("is longer than %d bytes", MaxSDP)
	}
	var s sdp.SessionDescription
	if err := s.UnmarshalString(text); err != nil {
		return Flow{}, errors.New("is no session description (RFC 8866)")
	}
	f := Flow{Name: cut(string(s.SessionName), maxName)}
	for _, m := range s.MediaDescriptions {
		if m.MediaName.Media != "audio" || strings.Join(m.MediaName.Protos, "/") != "RTP/AVP" {
			continue
		}
		if err := f.media(&s, m); err != nil {
			return Flow{}, err
		}
		return f, nil
	}
	return Flow{}, errors.New("has no audio by RTP/AVP")
}

// media reads m into f.
func (f *Flow) media(s *sdp.SessionDescription, m *sdp.MediaDescription) error {
	if err := f.encoding(m); err != nil {
		return err
	}
	f.Port = m.MediaName.Port.Value
	if f.Port < 1024 || f.Port > 65534 {
		return errors.New("has a port that is not from 1024 to 65534")
	}
	if err := f.connection(s, m); err != nil {
		return err
	}
	if f.Source = sourceOf(attribute(s, m, "source-filter"), f.Address); attribute(s, m, "source-filter") != "" && !f.Source.IsValid() {
		return errors.New("has a source-filter that does not include one IPv4 sender of the flow's address")
	}
	if err := f.packets(attribute(s, m, "ptime")); err != nil {
		return err
	}
	f.Clock = cut(attribute(s, m, "ts-refclk"), maxName)
	if text, ok := strings.CutPrefix(attribute(s, m, "mediaclk"), "direct="); ok {
		text, _, _ = strings.Cut(text, " ")
		if n, err := strconv.ParseUint(text, 10, 32); err == nil {
			f.Offset = uint32(n)
		}
	}
	return nil
}

// encoding finds the first payload type of m that is L24 or L16 at Rate.
func (f *Flow) encoding(m *sdp.MediaDescription) error {
	for _, a := range m.Attributes {
		number, what, ok := strings.Cut(a.Value, " ")
		if a.Key != "rtpmap" || !ok {
			continue
		}
		parts := strings.Split(strings.TrimSpace(what), "/")
		pt, err := strconv.ParseUint(number, 10, 7)
		if err != nil || len(parts) < 2 || parts[1] != strconv.Itoa(Rate) {
			continue
		}
		f.Format, f.Payload, f.Channels = strings.ToUpper(parts[0]), uint8(pt), 1
		if len(parts) > 2 {
			f.Channels, _ = strconv.Atoi(parts[2])
		}
		if f.Format != "L24" && f.Format != "L16" {
			continue
		}
		if f.Channels < 1 || f.Channels > MaxChannels {
			return fmt.Errorf("has a number of channels that is not from 1 to %d", MaxChannels)
		}
		return nil
	}
	return fmt.Errorf("has no sound of L24 or L16 at %d Hz (a=rtpmap)", Rate)
}

// connection reads where the flow goes.
func (f *Flow) connection(s *sdp.SessionDescription, m *sdp.MediaDescription) error {
	c := m.ConnectionInformation
	if c == nil {
		c = s.ConnectionInformation
	}
	if c == nil || c.Address == nil || c.NetworkType != "IN" || c.AddressType != "IP4" {
		return errors.New("has no address of IPv4 (c=IN IP4)")
	}
	host, ttl, _ := strings.Cut(c.Address.Address, "/")
	addr, err := netip.ParseAddr(host)
	if err != nil || !addr.Is4() || addr.IsUnspecified() {
		return errors.New("has no address of IPv4 (c=IN IP4)")
	}
	f.Address = addr
	if c.Address.TTL != nil {
		f.TTL = *c.Address.TTL
	} else if n, err := strconv.Atoi(ttl); err == nil {
		f.TTL = n
	}
	f.TTL = min(max(f.TTL, 1), 255)
	return nil
}

// packets reads a=ptime; AES67 has 1 ms where nothing is said.
func (f *Flow) packets(text string) error {
	f.PTime = 1
	if text != "" {
		var err error
		if f.PTime, err = strconv.ParseFloat(text, 64); err != nil || !(f.PTime >= 0.12 && f.PTime <= 20) {
			return errors.New("has a ptime that is not from 0.12 to 20 milliseconds")
		}
	}
	return nil
}

// sourceOf reads a=source-filter: incl IN IP4 GROUP SENDER (RFC 4570).
func sourceOf(text string, group netip.Addr) netip.Addr {
	w := strings.Fields(text)
	if len(w) != 5 || w[0] != "incl" || w[1] != "IN" || w[2] != "IP4" || w[3] != group.String() && w[3] != "*" {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(w[4])
	if err != nil || !a.Is4() || a.IsUnspecified() || a.IsMulticast() {
		return netip.Addr{}
	}
	return a
}

// clockForm is what a description may say of a clock (RFC 7273, 4.8), as far as
// senders of sound use it.
var clockForm = regexp.MustCompile(`^(local|ptp=IEEE1588-20(02|08|19):(traceable|([0-9A-F]{2}-){7}[0-9A-F]{2}(:[0-9]{1,3})?))$`)

// ValidClock reports whether text names a clock for a description.
func ValidClock(text string) bool { return clockForm.MatchString(text) }

// SDP describes a flow that origin sends. id and version are those of its session
// (RFC 8866, 5.2): the version grows with each change.
func (f Flow) SDP(origin netip.Addr, id, version uint64) string {
	connection := f.Address.String()
	var filter string
	if f.Address.IsMulticast() {
		connection += "/" + strconv.Itoa(f.TTL)
		filter = "a=source-filter: incl IN IP4 " + f.Address.String() + " " + origin.String() + "\r\n"
	}
	ptime := strconv.FormatFloat(f.PTime, 'f', -1, 64)
	return fmt.Sprintf("v=0\r\no=- %d %d IN IP4 %s\r\ns=%s\r\nc=IN IP4 %s\r\nt=0 0\r\n"+
		"m=audio %d RTP/AVP %d\r\na=rtpmap:%d %s/%d/%d\r\n%sa=ptime:%s\r\na=ts-refclk:%s\r\na=mediaclk:direct=%d\r\na=recvonly\r\n",
		id, version, origin, f.Name, connection, f.Port, f.Payload, f.Payload, f.Format, Rate, f.Channels, filter, ptime, f.Clock, f.Offset)
}

// cut shortens s to n bytes, without what is no text of one line.
func cut(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return -1
		}
		return r
	}, s)
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "")
	}
	return s
}
