package sip

import (
	"crypto/rand"
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/pion/rtp"
	"sluice.dev/sluice/media/phone"
	"sluice.dev/sluice/media/phone/audio"
)

// maxLag is how many frames are made up for at a time when this process was late.
const maxLag = 10

// pump hands the sound of c on in even frames, and silence back, until it ends.
func (c *session) pump() phone.Reason {
	tick := time.NewTicker(audio.Frame)
	defer tick.Stop()
	longest := time.NewTimer(time.Duration(c.line.MaxDuration) * time.Second)
	defer longest.Stop()
	began := time.Now()
	c.mu.Lock()
	c.heard = began
	c.mu.Unlock()
	out := newSilence(c)
	frame := make([]int16, c.decode.Rate/int(time.Second/audio.Frame))
	for sent := time.Duration(0); ; {
		select {
		case why := <-c.why:
			return why
		case <-c.dialog.Context().Done():
			select {
			case why := <-c.why:
				return why
			default:
				return phone.ByCaller
			}
		case <-c.src.Done():
			return phone.ByStream
		case <-longest.C:
			return phone.TooLong
		case now := <-tick.C:
			due := now.Sub(began) / audio.Frame
			sent = max(sent, due-maxLag)
			for ; sent < due; sent++ {
				c.mu.Lock()
				c.sound.Take(frame)
				quiet, to, agreed := now.Sub(c.heard), c.remote, c.agreed
				c.mu.Unlock()
				c.src.Write(frame)
				if quiet > c.server.cfg.Silence {
					return phone.NoSound
				}
				if agreed.Hears() {
					out.send(c, to, agreed.Codec.Type)
				}
			}
		}
	}
}

// silence is what the other side hears: many telephones hang up when nothing comes, and
// routers forget the way.
type silence struct {
	packet rtp.Packet
	step   uint32
}

func newSilence(c *session) *silence {
	var random [10]byte
	rand.Read(random[:])
	codec := c.current().Codec
	return &silence{step: uint32(codec.Rate / int(time.Second/audio.Frame)), // #nosec G115 -- 160 or 960
		packet: rtp.Packet{Payload: audio.Silence(codec), Header: rtp.Header{Version: 2, SSRC: binary.BigEndian.Uint32(random[:]),
			Timestamp: binary.BigEndian.Uint32(random[4:]), SequenceNumber: binary.BigEndian.Uint16(random[8:])}}}
}

// send sends one frame to to, if that is known, as payload of kind.
func (q *silence) send(c *session, to netip.AddrPort, kind uint8) {
	q.packet.PayloadType = kind
	q.packet.SequenceNumber++
	q.packet.Timestamp += q.step
	if !to.IsValid() {
		return
	}
	raw, err := q.packet.Marshal()
	if err == nil {
		_, _ = c.conn.WriteToUDPAddrPort(raw, to) // lost, as any packet may be
	}
}

// maxPacket bounds a packet of sound, in bytes.
const maxPacket = 1500

// receive takes the packets of the other side until the socket is closed. Those of
// others are dropped: sound comes from who signals, or from the address that its
// description names.
func (c *session) receive() {
	room := make([]byte, maxPacket)
	var last uint16
	var begun bool
	keys := audio.Keys{Rate: c.current().KeysRate()}
	for {
		n, from, err := c.conn.ReadFromUDPAddrPort(room)
		if err != nil {
			return
		}
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		var p rtp.Packet
		if !c.expects(from) || p.Unmarshal(room[:n]) != nil || p.Version != 2 {
			continue
		}
		c.mu.Lock()
		agreed := c.agreed
		switch p.PayloadType {
		case agreed.Codec.Type:
			c.heard, c.remote = time.Now(), from
			if late := int16(p.SequenceNumber - last); !begun || late > 0 || late < -1000 { // #nosec G115 -- the difference of two counts that wrap
				last, begun = p.SequenceNumber, true
				if samples, err := c.decode.Decode(p.Payload); err == nil {
					c.sound.Put(p.Timestamp, samples)
				}
			}
			c.mu.Unlock()
		case agreed.Keys:
			c.heard = time.Now()
			c.mu.Unlock()
			if k, ok := keys.Read(p.Timestamp, p.Payload); ok && agreed.Keys != 0 {
				c.pressed(k, "rtp")
			}
		default:
			c.mu.Unlock()
		}
	}
}

// expects reports whether sound may come from addr.
func (c *session) expects(addr netip.AddrPort) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return addr.Addr() == c.from.Addr() || addr.Addr() == c.agreed.Addr.Addr()
}
