package transports

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/media/live/aes67"
	"sluice.dev/sluice/media/live/omt"
	"sluice.dev/sluice/media/live/sound"
)

// idle is after how long without sound from its source a stream goes off air.
const idle = 5 * time.Second

// errIdle says that nothing comes from a source.
var errIdle = errors.New("nothing comes from the source")

// flowIn makes a flow of AES67 the stream's sound.
func (w *worker) flowIn(ctx context.Context) error {
	flow := *w.Spec.Flow
	in, err := w.Settings.Network.Receive(ctx, flow, time.Duration(w.Spec.DelayMS)*time.Millisecond)
	if err != nil {
		return err
	}
	return w.listen(ctx, in.Run, source{channels: flow.Channels, read: in.Read, heard: in.Heard, stats: func() map[string]any {
		s := in.Stats()
		return map[string]any{"packets": s.Packets, "lost": s.Lost, "refused": s.Refused, "late": s.Late, "resets": s.Resets,
			"silent_ms": s.Silent * 1000 / aes67.Rate, "drift_ppm": drift(s.BufferStats)}
	}})
}

// drift is by how much the sender's clock is faster than ours, in millionths.
func drift(s aes67.BufferStats) int64 {
	if s.Frames == 0 {
		return 0
	}
	return s.Adjusted * 1e6 / s.Frames
}

// source is sound that comes from somewhere.
type source struct {
	channels int
	read     func([]float32) bool
	heard    func() time.Time // when something came last; zero: nothing has
	stats    func() map[string]any
}

// listen publishes what comes from a source whenever something comes, while run takes
// it.
func (w *worker) listen(ctx context.Context, run func(context.Context) error, from source) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return run(ctx) })
	group.Go(func() error {
		for ticker := time.NewTicker(idle / 50); ; {
			if time.Since(from.heard()) < idle/5 {
				err := w.publish(ctx, from)
				ticker.Stop()
				return err
			}
			w.count(from.stats())
			w.say(Waiting, errIdle.Error())
			select {
			case <-ctx.Done():
				ticker.Stop()
				return ctx.Err()
			case <-ticker.C:
			}
		}
	})
	return group.Wait()
}

// publish makes a source the stream's sound until nothing comes any more.
func (w *worker) publish(ctx context.Context, from source) error {
	if err := w.enter(ctx); err != nil {
		return err
	}
	all, taken := make([]float32, sound.Block*from.channels), make([]float32, sound.Block*len(w.Spec.Channels))
	return sound.Publish(ctx, w.FFmpeg, w.point(), len(w.Spec.Channels), func(ctx context.Context, write func([]float32) error) error {
		w.say(Running, "")
		return aes67.Pace(ctx, sound.Block, func() error {
			from.read(all)
			pick(taken, all, from.channels, w.Spec.Channels)
			w.count(from.stats())
			if time.Since(from.heard()) > idle {
				return errIdle
			}
			return write(taken)
		})
	})
}

// pick takes channels, numbered from 1, of interleaved frames. One that is not there is
// silent.
func pick(out, in []float32, channels int, wanted []int) {
	for i := range len(in) / channels {
		for j, n := range wanted {
			out[i*len(wanted)+j] = 0
			if n <= channels {
				out[i*len(wanted)+j] = in[i*channels+n-1]
			}
		}
	}
}

// outDelay is what levels out the bursts in which a stream's sound comes, in frames.
const outDelay = 100 * aes67.Rate / 1000

// flowOut sends the stream's sound as a flow of AES67: silence while it has none, so that
// receivers that are set up for the flow keep it.
func (w *worker) flowOut(ctx context.Context) error {
	out, err := w.Settings.Network.Send(ctx, *w.Spec.Flow)
	if err != nil {
		return err
	}
	description := w.Spec.Flow.SDP(w.Settings.Network.Origin(), w.Spec.Session, w.Spec.Session)
	w.describe(description)
	b := aes67.NewBuffer(w.Spec.Flow.Channels, outDelay)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return out.Run(ctx, b.Read) })
	group.Go(func() error { return w.Settings.Network.Announce(ctx, description) })
	group.Go(func() error { return w.follow(ctx, b) })
	return group.Wait()
}

// follow writes the stream's sound into b whenever there is some, until ctx ends.
func (w *worker) follow(ctx context.Context, b *aes67.Buffer) error {
	for {
		err := sound.Subscribe(ctx, w.FFmpeg, w.point(), len(w.Spec.Channels), func(frames []float32) {
			w.say(Running, "")
			s := b.Stats()
			w.count(map[string]any{"silent_ms": s.Silent * 1000 / aes67.Rate, "resets": s.Resets, "drift_ppm": drift(s)})
			b.Append(frames)
		})
		if ctx.Err() != nil || errors.Is(err, sound.ErrTool) {
			return err
		}
		w.say(Waiting, sound.ErrSilent.Error())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(w.Again):
		}
	}
}

// errForbidden says that a source has an address that the operator does not allow, or not
// any more.
var errForbidden = errors.New("the operator does not allow sources of this address")

// omtIn makes the sound of a source of OMT the stream's.
func (w *worker) omtIn(ctx context.Context) error {
	if at, err := netip.ParseAddrPort(w.Address); err != nil || !w.Settings.Network.Allows(at.Addr()) {
		return errForbidden
	}
	var b *aes67.Buffer
	var channels int
	var last time.Time
	first := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		failed <- omt.Receive(ctx, w.Address, func(s omt.Sound) error {
			if s.Rate != sound.Rate {
				return fmt.Errorf("the source sends sound of %d Hz, not of %d", s.Rate, sound.Rate)
			}
			w.mu.Lock()
			last = time.Now()
			w.mu.Unlock()
			if b == nil {
				channels = s.Channels
				b = aes67.NewBuffer(channels, int64(w.Spec.DelayMS)*sound.Rate/1000)
				close(first)
			}
			if s.Channels != channels {
				return errors.New("the source has changed its number of channels")
			}
			b.Append(s.Frames)
			return nil
		})
	}()
	w.say(Waiting, errIdle.Error())
	select {
	case err := <-failed:
		return err
	case <-first:
	}
	return w.listen(ctx, func(ctx context.Context) error {
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}, source{channels: channels, read: b.Read,
		heard: func() time.Time { w.mu.Lock(); defer w.mu.Unlock(); return last },
		stats: func() map[string]any {
			s := b.Stats()
			return map[string]any{"resets": s.Resets, "silent_ms": s.Silent * 1000 / aes67.Rate, "drift_ppm": drift(s)}
		}})
}

// omtOut sends the stream's sound to receivers of OMT.
func (w *worker) omtOut(ctx context.Context) error {
	var lc net.ListenConfig
	address := w.Settings.Network.Origin().String() + w.Address
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen for receivers: %w", err)
	}
	w.describe(address)
	var server omt.Server
	channels := len(w.Spec.Channels)
	b := aes67.NewBuffer(channels, outDelay)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Serve(ctx, w.guard(l)) })
	group.Go(func() error { return w.follow(ctx, b) })
	group.Go(func() error {
		block := make([]float32, channels*sound.Block)
		return aes67.Pace(ctx, sound.Block, func() error {
			b.Read(block)
			server.Send(sound.Rate, channels, block)
			return nil
		})
	})
	return group.Wait()
}
