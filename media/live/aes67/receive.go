package aes67

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Receiver is a flow that is listened to.
type Receiver struct {
	flow   Flow
	conn   *net.UDPConn
	buffer *Buffer

	mu     sync.Mutex
	packet unpacker
	heard  time.Time
}

// Receive begins to listen to f, whose sound is played after delay. It fails for a flow
// that n does not allow.
func (n Network) Receive(ctx context.Context, f Flow, delay time.Duration) (*Receiver, error) {
	if !n.Allows(f.Address) {
		return nil, errNetwork
	}
	c, err := n.listen(ctx, f.Address, f.Source, f.Port)
	if err != nil {
		return nil, err
	}
	b := NewBuffer(f.Channels, int64(delay*Rate/time.Second))
	return &Receiver{flow: f, conn: c, buffer: b, packet: unpacker{flow: f, buffer: b}}, nil
}

// Run takes packets until ctx ends, or the socket fails. It closes the socket.
func (r *Receiver) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = r.conn.Close() })
	defer stop()
	defer func() { _ = r.conn.Close() }()
	datagram := make([]byte, 9000)
	for {
		n, from, err := r.conn.ReadFromUDPAddrPort(datagram)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		if r.flow.Source.IsValid() && from.Addr().Unmap() != r.flow.Source {
			continue
		}
		r.mu.Lock()
		if r.packet.take(datagram[:n]) == nil {
			r.heard = time.Now()
		}
		r.mu.Unlock()
	}
}

// Read fills out with the next frames of the flow; see Buffer.Read.
func (r *Receiver) Read(out []float32) bool { return r.buffer.Read(out) }

// Heard is when the last packet came; zero: none has.
func (r *Receiver) Heard() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heard
}

// Stats returns what was counted.
func (r *Receiver) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.packet.stats()
}

// Sender sends a flow.
type Sender struct {
	conn   *net.UDPConn
	packer packer
	frames int
	sent   int64
}

// Send opens a flow. Its timestamps are those of this machine's clock (TAI), so that
// receivers of a machine whose clock follows PTP can align it. It fails for an
// address that n does not allow.
func (n Network) Send(ctx context.Context, f Flow) (*Sender, error) {
	if !n.Allows(f.Address) {
		return nil, errNetwork
	}
	if f.frames()*f.Channels*f.sampleBytes() > maxPayload {
		return nil, fmt.Errorf("%d channels of %s do not fit into a packet of %g ms", f.Channels, f.Format, f.PTime)
	}
	c, err := n.dial(ctx, f.Address, f.Port, f.TTL)
	if err != nil {
		return nil, err
	}
	s := &Sender{conn: c, packer: packer{flow: f}, frames: f.frames()}
	h := &s.packer.next
	h.Version, h.PayloadType, h.SSRC, h.SequenceNumber = 2, f.Payload, rand.Uint32(), uint16(rand.Uint32())
	h.Timestamp = timestamp() + f.Offset
	return s, nil
}

// timestamp is the RTP timestamp of now by TAI.
func timestamp() uint32 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_TAI, &now); err != nil {
		now = unix.NsecToTimespec(time.Now().UnixNano())
	}
	return uint32(uint64(now.Sec)*Rate + uint64(now.Nsec)*Rate/1e9)
}

// Origin is the address that the flow comes from.
func (n Network) Origin() netip.Addr { return n.Interfaces[0].Addr }

// Run sends a packet each time that one is due, filled by read, until ctx ends. A
// receiver that is not there is no failure.
func (s *Sender) Run(ctx context.Context, read func(out []float32) bool) error {
	defer func() { _ = s.conn.Close() }()
	frames := make([]float32, s.frames*s.packer.flow.Channels)
	return Pace(ctx, s.frames, func() error {
		read(frames)
		packet, err := s.packer.pack(frames)
		if err != nil {
			return fmt.Errorf("make packet: %w", err)
		}
		if _, err := s.conn.Write(packet); err == nil {
			s.sent++
		}
		return nil
	})
}

// Pace calls f once for each block of so many frames, when it is due by the monotonic
// clock, until ctx ends or f fails. After a pause of the machine of more than a
// second it goes on from there.
func Pace(ctx context.Context, frames int, f func() error) error {
	start, done := time.Now(), int64(0)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		due := int64(time.Since(start)) * Rate / int64(time.Second) / int64(frames)
		if due-done > Rate/int64(frames) {
			done = due - 1
		}
		for ; done < due; done++ {
			if err := f(); err != nil {
				return err
			}
		}
		next := start.Add(time.Duration((done + 1) * int64(frames) * int64(time.Second) / Rate))
		timer.Reset(time.Until(next))
	}
}
